#include "passes/lower.h"

#include "passes/lower_targets.h"

namespace modelport::passes {

ir::Graph lower_to(const Target& target, const ir::Graph& graph) {
  if (const auto* onnx = std::get_if<OnnxTarget>(&target)) return lower_to_onnx(graph, *onnx);
  return lower_to_executorch(graph, std::get<ExecutorchTarget>(target));
}

}  // namespace modelport::passes
