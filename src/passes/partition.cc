#include "passes/partition.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "passes/rebuild.h"

namespace modelport::passes {
namespace {

using Symbols = std::set<std::string, std::less<>>;

bool is_xnnpack(const ir::Node& node) { return node.op.starts_with("xnn."); }

/// What it gives is in the file, and there from the beginning.
bool is_written_out(const ir::Node& node) {
  return node.op == "et.constant" || node.op == "et.quantize" || node.op == "et.fold_norm";
}

void collect(const ir::Arg& arg, Symbols& into) {
  if (const auto* x = arg.get<shape::Int>()) shape::collect_symbols(*x, into);
  if (const auto* x = arg.get<shape::Real>()) shape::collect_symbols(*x, into);
  if (const auto* x = arg.get<shape::Bool>()) shape::collect_symbols(*x, into);
  if (const auto* list = arg.get<ir::ArgList>()) {
    for (const ir::Arg& item : *list) collect(item, into);
  }
}

void collect(const ir::Type& type, Symbols& into) {
  if (const auto* tensor = std::get_if<ir::TensorType>(&type)) {
    for (const shape::Int& size : tensor->shape) shape::collect_symbols(size, into);
  } else {
    std::visit([&](const auto& symbol) { shape::collect_symbols(symbol, into); },
               std::get<ir::ScalarType>(type).symbol);
  }
}

std::vector<bool> live_nodes(const ir::Graph& graph) {
  std::vector<bool> needed(graph.values().size(), false);
  const auto need = [&](ir::ValueId id) { needed[id.index] = true; };
  ir::for_each_end(graph, need);
  std::vector<bool> live(graph.nodes().size(), false);
  for (std::size_t i = live.size(); i-- > 0;) {
    const ir::Node& node = graph.nodes()[i];
    // Kernels may be there for a number or a check.
    live[i] = !(is_xnnpack(node) || is_written_out(node) || node.op == "et.view");
    for (const ir::ValueId id : node.results) live[i] = live[i] || needed[id.index];
    if (!live[i]) continue;
    ir::for_each_operand(node, need);
  }
  return live;
}

/// The step that a node can run in: behind everything that it reads, or is computed from.
class Steps {
 public:
  explicit Steps(const ir::Graph& graph) : graph_(graph), of_value_(graph.values().size(), 0) {
    Symbols known;
    for (const ir::ValueId id : graph.inputs) collect(graph.value(id).type, known);
    for (const std::string& symbol : known) of_symbol_[symbol] = 0;
  }

  std::size_t next(const ir::Node& node) {
    if (is_written_out(node)) return 0;
    const bool delegated = is_xnnpack(node);
    std::size_t step = delegated ? 1 : 0;
    for (const ir::NamedArg& named : node.args) {
      ir::for_each_value(named.arg, [&](ir::ValueId id) {
        const bool waits = delegated && !is_given_by_xnnpack(id);
        step = std::max(step, of_value_[id.index] + (waits ? 1 : 0));
      });
    }
    for (const auto& [symbol, found] : symbols_of(node)) step = std::max(step, found);
    for (const ir::ValueId id : node.results) {
      of_value_[id.index] = step;
      Symbols made;
      collect(graph_.value(id).type, made);
      for (const std::string& symbol : made) of_symbol_.try_emplace(symbol, step);
    }
    return step;
  }

 private:
  bool is_given_by_xnnpack(ir::ValueId id) const {
    const ir::Value& value = graph_.value(id);
    return value.origin == ir::Origin::node && is_xnnpack(graph_.node(value.producer));
  }

  /// Those that its arguments mention, with the step that gives them their values.
  std::map<std::string, std::size_t> symbols_of(const ir::Node& node) const {
    Symbols mentioned;
    for (const ir::NamedArg& named : node.args) collect(named.arg, mentioned);
    std::map<std::string, std::size_t> found;
    for (const std::string& symbol : mentioned) {
      const auto known = of_symbol_.find(symbol);
      if (known != of_symbol_.end()) found.insert(*known);
    }
    return found;
  }

  const ir::Graph& graph_;
  std::vector<std::size_t> of_value_;
  std::map<std::string, std::size_t> of_symbol_;
};

}  // namespace

Partition partition(const ir::Graph& graph) {
  Partition found{.delegate_of = std::vector<std::size_t>(graph.nodes().size(), 0),
                  .step_of = std::vector<std::size_t>(graph.nodes().size(), 0),
                  .is_live = live_nodes(graph)};
  Steps steps(graph);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!found.is_live[i]) continue;
    found.step_of[i] = steps.next(graph.nodes()[i]);
    if (!is_xnnpack(graph.nodes()[i])) continue;
    found.delegate_of[i] = found.step_of[i];
    found.count = std::max(found.count, found.step_of[i]);
  }
  return found;
}

ir::Graph in_order_of(const Partition& partition, const ir::Graph& graph) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (partition.is_live[i]) order.push_back(i);
  }
  // Delegate k runs between the kernels of step k - 1 and those of step k.
  const auto position = [&](std::size_t node) {
    return 2 * partition.step_of[node] + (partition.delegate_of[node] == 0 ? 1 : 0);
  };
  std::ranges::stable_sort(order, {}, position);
  Rebuild rebuilt(graph);
  for (const std::size_t node : order) rebuilt.copy(graph.nodes()[node]);
  return std::move(rebuilt).finish();
}

}  // namespace modelport::passes
