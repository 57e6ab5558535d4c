// The parts of lower_to() that are one target's own.
#pragma once

#include "ir/graph.h"
#include "passes/lower.h"

namespace modelport::passes {

ir::Graph lower_to_onnx(const ir::Graph& graph, const OnnxTarget& target);
ir::Graph lower_to_pt2(const ir::Graph& graph);
ir::Graph lower_to_executorch(const ir::Graph& graph, const ExecutorchTarget& target);

}  // namespace modelport::passes
