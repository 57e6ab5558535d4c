// A .pt2 archive as a graph: what torch.export.save or we wrote.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "ir/graph.h"
#include "signature/signature.h"
#include "weights/store.h"

namespace modelport::pt2 {

struct Pt2Program {
  ir::Graph graph;
  signature::Signature signature;
  weights::WeightStore weights;  // stored weights stay in the mapped file
};

/// Throws ExportError: Code::bad_file for a file that is damaged, Code::unsupported_op with
/// everything in the program that a graph cannot hold.
Pt2Program read_pt2(const std::filesystem::path& path);
/// The same for bytes in memory, which must outlive the weights. `name` is what messages call them.
Pt2Program read_pt2(std::span<const std::byte> archive, const std::string& name);

}  // namespace modelport::pt2
