// A graph of ONNX operators as a model file: protobuf, with the weights inside or beside it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "weights/quantize/error_feedback.h"
#include "weights/sink.h"
#include "weights/store.h"
#include "weights/stream.h"

namespace modelport::onnx {

enum class WeightLayout {
  beside,   // one or more files next to the model
  inside,   // in the model file, which protobuf limits to 2 GB
  linked,   // where they are, in the checkpoint's own safetensors files; others beside the model
  left_out  // parameters and buffers become inputs
};

struct OnnxOptions {
  int opset = 23;
  WeightLayout weights = WeightLayout::beside;
  std::uint64_t shard_bytes = 0;   // beside: a file takes no more than this; 0: one file
  bool weights_as_inputs = false;  // initializers are listed among the inputs too
  bool transpose_weights = true;   // a transposed weight is stored so, not transposed at run time
  std::string data_suffix = "_data";  // the file beside is called <model file><suffix>
  std::filesystem::path home;  // linked: the folder that the model will be in; empty: where it is
  std::string producer_version;
  std::vector<std::pair<std::string, std::string>> metadata;
};

struct OnnxRequest {
  const ir::Graph& graph;               // nodes onnx.* and com.microsoft.*
  const weights::WeightStore& weights;  // converted where the graph has another floating type
  OnnxOptions options;
  /// Of products with a weight in few bits, by its name, where they were measured.
  std::map<std::string, weights::InputFacts> inputs = {};
};

struct OnnxWritten {
  std::vector<std::filesystem::path> files;  // the model first
  std::vector<weights::ConversionLoss> losses;
};

/// Throws ExportError with everything that the format cannot hold; what is at `path` is then as it
/// was. Same request, same bytes.
OnnxWritten write_onnx(const OnnxRequest& request, const std::filesystem::path& path);
/// The whole model, weights inside, in memory.
std::string onnx_bytes(const OnnxRequest& request);

}  // namespace modelport::onnx
