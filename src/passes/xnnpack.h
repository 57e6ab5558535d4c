// A captured graph in the operators of ExecuTorch, where XNNPACK takes over what it can.
#pragma once

#include <map>

#include "ir/graph.h"
#include "ops/executorch/storing.h"
#include "ops/xnnpack/lower.h"

namespace modelport::passes {

struct XnnpackOptions {
  ops::executorch::Storing storing = {};
  /// Calling a delegate costs something: one without a product or a convolution, and with fewer
  /// nodes than this, is left to the kernels.
  std::size_t least_nodes = 8;
};

struct XnnpackLowered {
  ir::Graph graph;  // et.* and xnn.* nodes; those in a row are one delegate
  std::size_t delegates = 0;
  std::map<ops::xnnpack::Left, std::size_t> left;  // how many calls stay with kernels, and why
};

/// Throws what lower_to() throws.
XnnpackLowered lower_to_xnnpack(const ir::Graph& graph, const XnnpackOptions& options = {});

}  // namespace modelport::passes
