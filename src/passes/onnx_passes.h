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
/// What only small constants go into becomes a constant.
void fold_constants(ir::Graph& graph);

}  // namespace modelport::passes
