// Taking nodes out of a graph: keep_nodes renumbers what stays in one walk over the graph.
#include <algorithm>

#include "ir/graph.h"

namespace modelport::ir {

namespace {

/// Where each value goes; ValueId{} for those that are dropped.
using Renumbering = std::vector<ValueId>;

/// Calls `visit(ValueId&)` for every mention of a value in what stays; definitions aside.
template <class Visit>
void for_each_mention(Arg& arg, Visit&& visit) {
  if (ValueId* id = std::get_if<ValueId>(&arg.value)) visit(*id);
  if (ArgList* list = std::get_if<ArgList>(&arg.value)) {
    for (Arg& item : *list) for_each_mention(item, visit);
  }
}

template <class Visit>
void for_each_mention(Graph& graph, const std::vector<bool>& keep, Visit&& visit) {
  for (std::uint32_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    for (NamedArg& named : graph.node({i}).args) for_each_mention(named.arg, visit);
  }
  for (Output& output : graph.outputs) for_each_mention(output.value, visit);
  for (Mutation& mutation : graph.mutations) {
    visit(mutation.buffer);
    visit(mutation.value);
  }
  for (Assumption& assumption : graph.assumptions) visit(assumption.value);
  for (ValueId& id : graph.inputs) visit(id);
  for (ValueId& id : graph.weights) visit(id);
}

Renumbering renumber(const Graph& graph, const std::vector<bool>& keep) {
  std::vector<bool> stays(graph.values().size(), false);
  const auto mark = [&](ValueId id) {
    if (id.index >= stays.size())
      throw InternalError("keep_nodes on a graph with a value id out of range");
    stays[id.index] = true;
  };
  std::ranges::for_each(graph.inputs, mark);
  std::ranges::for_each(graph.weights, mark);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) std::ranges::for_each(graph.nodes()[i].results, mark);
  }
  Renumbering moved(stays.size());
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < stays.size(); ++i) {
    if (stays[i]) moved[i] = {next++};
  }
  return moved;
}

}  // namespace

void Graph::keep_nodes(const std::vector<bool>& keep) {
  if (keep.size() != nodes_.size()) throw InternalError("keep_nodes wants one mark for each node");
  const Renumbering moved = renumber(*this, keep);
  for_each_mention(*this, keep, [&](const ValueId& id) {
    if (id.index >= moved.size() || moved[id.index] == ValueId{}) {
      throw InternalError("keep_nodes would drop a value that is still used");
    }
  });
  for_each_mention(*this, keep, [&](ValueId& id) { id = moved[id.index]; });

  std::uint32_t kept = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!keep[i]) continue;
    for (ValueId& id : nodes_[i].results) {
      values_[id.index].producer = {kept};
      id = moved[id.index];
    }
    if (kept != i) nodes_[kept] = std::move(nodes_[i]);
    ++kept;
  }
  nodes_.resize(kept);

  std::size_t size = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (moved[i] == ValueId{}) continue;
    if (size != i) values_[size] = std::move(values_[i]);
    ++size;
  }
  values_.resize(size);

  inputs_by_name_.clear();
  weights_by_name_.clear();
  for (const ValueId id : inputs) inputs_by_name_.try_emplace(values_[id.index].name, id);
  for (const ValueId id : weights) weights_by_name_.try_emplace(values_[id.index].name, id);
}

}  // namespace modelport::ir
