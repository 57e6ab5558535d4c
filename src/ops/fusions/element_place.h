// A result of a node and an index in it, as the rules for elements see them.
#pragma once

#include <optional>

#include "ops/fusions/elements.h"

namespace modelport::ops::fusions {

struct Elements::Place {
  const ir::Graph& graph;
  const ir::Node& node;
  ir::ValueId value;
  const Index& index;

  ir::ValueId operand(std::string_view name) const { return *node.find(name)->get<ir::ValueId>(); }
  const ir::TensorType& type() const { return graph.value(value).tensor(); }
  const ir::TensorType& type(std::string_view operand_name) const {
    return graph.value(operand(operand_name)).tensor();
  }
  /// An integer argument; `otherwise` where it has its default, nothing where it is none.
  std::optional<shape::Int> size(std::string_view name, std::int64_t otherwise) const {
    const ir::Arg* arg = node.find(name);
    if (arg == nullptr || arg->is_none()) return shape::Int(otherwise);
    const auto* x = arg->get<shape::Int>();
    return x == nullptr ? std::nullopt : std::optional(*x);
  }
  /// An axis of a tensor with so many axes, counted from the front.
  std::size_t axis(std::string_view name, std::size_t rank, std::int64_t otherwise = 0) const {
    const auto given = size(name, otherwise);
    const std::int64_t at = given ? given->constant().value_or(0) : 0;
    return static_cast<std::size_t>(at < 0 ? at + static_cast<std::int64_t>(rank) : at);
  }
};

}  // namespace modelport::ops::fusions
