// Passes on graphs of ONNX operators.
#pragma once

#include "ir/graph.h"

namespace modelport::passes {

/// Nodes that compute the same from the same become one.
void share_common(ir::Graph& graph);
/// x + 0, x * 1, casts, transposes and reshapes that cancel or follow one another.
void simplify(ir::Graph& graph);
/// x * cos + rotate_half(x) * sin becomes one operator, which opset 23 has.
void fuse_rotary(ir::Graph& graph);
/// x times the transposed weight becomes Gemm, which needs no transposed copy: where the weight is
/// used as it is too (an embedding that is also the head), or everywhere.
void use_gemm_for_shared_weights(ir::Graph& graph);
void use_gemm_for_all_weights(ir::Graph& graph);
/// What only small constants go into becomes a constant.
void fold_constants(ir::Graph& graph);

/// Nodes that make a runtime fail where inputs are outside of what the graph is valid for.
void put_limits_into_graph(ir::Graph& graph, int opset);

}  // namespace modelport::passes
