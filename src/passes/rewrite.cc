#include "passes/rewrite.h"

namespace modelport::passes {

void Replacements::apply(ir::Arg& arg) const {
  if (auto* id = std::get_if<ir::ValueId>(&arg.value)) *id = operator()(*id);
  if (auto* list = std::get_if<ir::ArgList>(&arg.value)) {
    for (ir::Arg& item : *list) apply(item);
  }
}

void Replacements::apply(ir::Node& node) const {
  for (ir::NamedArg& named : node.args) apply(named.arg);
}

void Replacements::apply_to_outputs(ir::Graph& graph) const {
  for (ir::Output& output : graph.outputs) apply(output.value);
  for (ir::Mutation& mutation : graph.mutations) mutation.value = operator()(mutation.value);
  for (ir::Assumption& assumption : graph.assumptions)
    assumption.value = operator()(assumption.value);
}

void drop_unused(ir::Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  const auto need = [&](ir::ValueId id) { needed[id.index] = true; };
  ir::for_each_end(graph, need);
  for (const ir::Mutation& mutation : graph.mutations) need(mutation.buffer);
  std::vector<bool> keep(graph.nodes().size(), false);
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const ir::Node& node = graph.nodes()[i];
    for (const ir::ValueId id : node.results) keep[i] = keep[i] || needed[id.index];
    if (!keep[i]) continue;
    ir::for_each_operand(node, need);
  }
  std::erase_if(graph.weights, [&](ir::ValueId id) { return !needed[id.index]; });
  graph.keep_nodes(keep);
}

ir::ValueId input_of(const ir::Node& node, std::size_t index) {
  const ir::Arg* inputs = node.find("inputs");
  if (inputs == nullptr) return {};
  const ir::ArgList& list = *inputs->get<ir::ArgList>();
  const ir::ValueId* id = index < list.size() ? list[index].get<ir::ValueId>() : nullptr;
  return id == nullptr ? ir::ValueId{} : *id;
}

std::size_t input_count(const ir::Node& node) {
  const ir::Arg* inputs = node.find("inputs");
  return inputs == nullptr ? 0 : inputs->get<ir::ArgList>()->size();
}

}  // namespace modelport::passes
