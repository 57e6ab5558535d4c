// What an .onnx file says of itself: inputs, outputs, operators, weights, metadata. The bytes of
// weights are skipped, so that a model of any size is looked at in milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace modelport::onnx {

struct ValueSummary {
  std::string name;
  std::string dtype;               // "f32"; empty where the file does not say
  std::vector<std::string> shape;  // numbers and names of axes; "?" for an axis without either
  bool has_shape = false;
};

struct WeightSummary {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::string file;          // where the bytes are, as the file has it; empty: inside
  std::uint64_t offset = 0;  // in that file; of one inside 0 where it is not stored as bytes
};

struct NodeSummary {
  std::string op;  // "MatMul", "com.microsoft.FusedMatMul"
  std::string name;
  std::string source;               // the model's line, "modeling_bert.py:312"; empty: unknown
  std::vector<std::string> inputs;  // an empty name is an input that is left out
  std::vector<std::string> outputs;
  std::string attributes;  // "axis=1, keepdims=0", as people read them
};

struct ModelSummary {
  std::int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string graph_name;
  std::vector<std::pair<std::string, std::int64_t>> opsets;  // domain (empty: ONNX's own), version
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<ValueSummary> inputs;  // without initializers that are listed among them
  std::vector<ValueSummary> outputs;
  std::vector<WeightSummary> weights;
  std::vector<NodeSummary> nodes;    // of the main graph
  std::set<std::string> data_files;  // every file that a tensor anywhere in the model names
  std::map<std::string, std::size_t> operators;  // with those of inner graphs and functions
};

/// Throws ExportError (bad_file) for bytes that are no ONNX model; `name` is for the message.
ModelSummary summarize(std::span<const std::byte> bytes, const std::string& name);

/// The model with these values of its main graph as further outputs: protobuf merges what follows
/// a message into it, so this is what to append to the file's bytes.
std::string further_outputs(std::span<const std::string> names);
/// In the same way: an initializer that is true or false becomes what a call may set.
std::string settable_flag(const std::string& name);

}  // namespace modelport::onnx
