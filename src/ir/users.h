// Who takes the values of a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace modelport::ir {

/// Of a graph as it was when this was made.
class Users {
 public:
  explicit Users(const Graph& graph)
      : nodes_(graph.values().size()), kept_(graph.values().size(), false) {
    for (std::uint32_t i = 0; i < graph.nodes().size(); ++i)
      for_each_operand(graph.node({i}), [&](ValueId id) { nodes_[id.index].push_back({i}); });
    for_each_end(graph, [&](ValueId id) { kept_[id.index] = true; });
  }

  /// In their order; a node that takes a value twice is there twice.
  const std::vector<NodeId>& nodes(ValueId id) const { return nodes_[id.index]; }
  /// Whether an output, a buffer or a condition takes it.
  bool is_kept(ValueId id) const { return kept_[id.index]; }
  /// The node that takes a value, once, which nothing else takes.
  std::optional<NodeId> only(ValueId id) const {
    if (is_kept(id) || nodes(id).size() != 1) return std::nullopt;
    return nodes(id)[0];
  }

 private:
  std::vector<std::vector<NodeId>> nodes_;
  std::vector<bool> kept_;
};

}  // namespace modelport::ir
