// A graph as a .pt2 archive: what torch.export.save writes and torch.export.load reads.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "ir/graph.h"
#include "signature/signature.h"
#include "weights/sink.h"
#include "weights/store.h"

namespace modelport::pt2 {

struct Pt2Request {
  const ir::Graph& graph;
  const signature::Signature& signature;  // empty lists: inputs and outputs as the graph has them
  const weights::WeightStore& weights;
  std::string torch_version = "2.13.0";
  /// Where tensors lie when torch has loaded the program: "cpu", "cuda:0".
  std::string device = "cpu";
  /// `torch.save` of (args, kwargs). Torch's loader does without; with them it also tests types of
  /// inputs.
  std::span<const std::byte> sample_inputs = {};
};

/// Throws ExportError with everything that the format cannot hold; the file at `path` is then as it
/// was.
void write_pt2(const Pt2Request& request, const std::filesystem::path& path);
/// The same, into any sink. Same request, same bytes.
void write_pt2(const Pt2Request& request, weights::Sink& sink);

/// Whether a weight is in the program's state dict; the others are constants.
bool is_saved(const ir::Value& weight);

/// models/model.json of the archive.
std::string program_json(const Pt2Request& request);

}  // namespace modelport::pt2
