#include "passes/lower.h"

#include "passes/contract.h"
#include "passes/lower_targets.h"

namespace modelport::passes {
namespace {

ir::Graph lowered(const OnnxTarget& target, const ir::Graph& graph) {
  return lower_to_onnx(graph, target);
}
ir::Graph lowered(const ExecutorchTarget& target, const ir::Graph& graph) {
  return lower_to_executorch(graph, target);
}
ir::Graph lowered(const Pt2Target&, const ir::Graph& graph) { return lower_to_pt2(graph); }

}  // namespace

const Contract& contract_of(const Target& target) {
  if (std::holds_alternative<OnnxTarget>(target)) return kOnnxContract;
  return std::holds_alternative<Pt2Target>(target) ? kPt2Contract : kExecutorchContract;
}

ir::Graph lower_to(const Target& target, const ir::Graph& graph) {
  ir::Graph made = std::visit([&](const auto& one) { return lowered(one, graph); }, target);
  hold(made, contract_of(target));
  return made;
}

}  // namespace modelport::passes
