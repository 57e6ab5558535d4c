#include <algorithm>
#include <map>

#include "ir/graph.h"
#include "ir/symbols.h"

namespace modelport::ir {

namespace {

/// For each symbol that no input brings along, and each float and bool read from data, the node
/// whose result gives it its value.
class Givers {
 public:
  explicit Givers(const Graph& graph) {
    Mentions of_inputs;
    for (const ValueId id : graph.inputs) collect(graph.value(id).type, of_inputs);
    for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
      Mentions given;
      for (const ValueId id : graph.node({i}).results) collect(graph.value(id).type, given);
      for (const std::string& symbol : given.sizes) {
        if (!of_inputs.sizes.contains(symbol)) sizes_.try_emplace(symbol, i);
      }
      for (const std::string& symbol : given.data) {
        if (!of_inputs.data.contains(symbol)) data_.try_emplace(symbol, i);
      }
    }
  }

  bool empty() const { return sizes_.empty() && data_.empty(); }

  template <class Visit>
  void for_each(const Mentions& mentions, Visit&& visit) const {
    for (const std::string& symbol : mentions.sizes) {
      if (const auto giver = sizes_.find(symbol); giver != sizes_.end()) visit(giver->second);
    }
    for (const std::string& symbol : mentions.data) {
      if (const auto giver = data_.find(symbol); giver != data_.end()) visit(giver->second);
    }
  }

 private:
  std::map<std::string, std::uint32_t, std::less<>> sizes_;
  std::map<std::string, std::uint32_t, std::less<>> data_;
};

class Liveness {
 public:
  explicit Liveness(const Graph& graph)
      : graph_(graph),
        keep_(graph.nodes().size(), false),
        needed_(graph.values().size(), false),
        givers_(graph) {}

  std::vector<bool> nodes_to_keep() {
    for (const Output& output : graph_.outputs) need(output.value);
    for (const Mutation& mutation : graph_.mutations) need(mutation.value);
    for (const Assumption& assumption : graph_.assumptions) need(assumption.value);
    Mentions tested;
    for (const shape::Guard& guard : graph_.guards) collect(guard.condition, tested);
    need(tested);
    for (std::size_t i = keep_.size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      const auto is_needed = [&](ValueId id) { return needed_[id.index]; };
      if (node.results.empty() || std::ranges::any_of(node.results, is_needed)) keep_[i] = true;
      if (!keep_[i]) continue;
      for (const NamedArg& named : node.args) need(named.arg);
    }
    return std::move(keep_);
  }

 private:
  void need(ValueId id) { needed_[id.index] = true; }
  void need(const Mentions& mentions) {
    givers_.for_each(mentions, [&](std::uint32_t node) { keep_[node] = true; });
  }
  void need(const Arg& arg) {
    for_each_value(arg, [&](ValueId id) { need(id); });
    if (givers_.empty()) return;
    Mentions mentions;
    collect(arg, mentions);
    need(mentions);
  }

  const Graph& graph_;
  std::vector<bool> keep_;
  std::vector<bool> needed_;
  Givers givers_;
};

}  // namespace

void drop_dead_nodes(Graph& graph) {
  const std::vector<bool> keep = Liveness(graph).nodes_to_keep();
  if (std::ranges::find(keep, false) != keep.end()) graph.keep_nodes(keep);
}

}  // namespace modelport::ir
