// Passes on captured graphs: what models write with many operators and ATen has one for. The rows
// are in ops/fusions.
#pragma once

#include <functional>

#include "ops/fusions/fusion.h"

namespace modelport::passes {

/// Which row was applied where.
struct FusionTrace {
  std::string_view name;
  ir::Place place;
};
/// What asks of a fused operator's arguments whether it is wanted.
using Wanted = std::function<bool(const std::vector<ir::NamedArg>& args)>;
/// Applies the rows, at each node the first that fits.
std::vector<FusionTrace> fuse(ir::Graph& graph, std::span<const ops::fusions::Fusion> rows,
                              const Wanted& wanted = {});

void fuse_norms(ir::Graph& graph);
void fuse_grouped_attention(ir::Graph& graph);
/// For weights in few bits alone: floats have no such kernel.
void fuse_experts(ir::Graph& graph, const Wanted& wanted);

}  // namespace modelport::passes
