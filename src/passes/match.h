// Reads a graph backwards: which node made a value, with which arguments, and how often it is used.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace modelport::passes {

class Match {
 public:
  explicit Match(const ir::Graph& graph) : graph_(graph), uses_(graph.values().size(), 0) {
    const auto count = [&](ir::ValueId id) { ++uses_[id.index]; };
    for (const ir::Node& node : graph.nodes()) {
      for (const ir::NamedArg& named : node.args) ir::for_each_value(named.arg, count);
    }
    for (const ir::Output& output : graph.outputs) ir::for_each_value(output.value, count);
    for (const ir::Assumption& assumption : graph.assumptions) count(assumption.value);
    for (const ir::Mutation& mutation : graph.mutations) count(mutation.value);
  }

  /// How often the value was used when the match began.
  int uses(ir::ValueId id) const { return uses_[id.index]; }
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  /// nullptr for inputs and weights, and for an input that is left out.
  const ir::Node* producer(ir::ValueId id) const {
    if (id == ir::ValueId{}) return nullptr;
    const ir::Value& value = graph_.value(id);
    return value.origin == ir::Origin::node ? &graph_.node(value.producer) : nullptr;
  }
  /// The node that made the value, if it is a call of `op`.
  const ir::Node* made_by(ir::ValueId id, std::string_view op) const {
    const ir::Node* node = producer(id);
    return node != nullptr && node->op == op ? node : nullptr;
  }
  const ir::Node* made_by(const ir::Node& node, std::string_view argument,
                          std::string_view op) const {
    const auto id = value(node, argument);
    return id ? made_by(*id, op) : nullptr;
  }

  std::optional<ir::ValueId> value(const ir::Node& node, std::string_view argument) const {
    const ir::Arg* arg = node.find(argument);
    const ir::ValueId* id = arg == nullptr ? nullptr : arg->get<ir::ValueId>();
    return id == nullptr ? std::nullopt : std::optional(*id);
  }
  /// A plain number.
  std::optional<double> number(const ir::Node& node, std::string_view argument) const {
    const ir::Arg* arg = node.find(argument);
    if (arg == nullptr) return std::nullopt;
    if (const double* real = arg->get<double>()) return *real;
    const auto* integer = arg->get<shape::Int>();
    if (integer == nullptr || !integer->constant()) return std::nullopt;
    return static_cast<double>(*integer->constant());
  }
  bool is_true(const ir::Node& node, std::string_view argument) const {
    const ir::Arg* arg = node.find(argument);
    return arg != nullptr && arg->get<bool>() != nullptr && *arg->get<bool>();
  }
  /// A list of plain integers; empty where it is no such list.
  std::vector<std::int64_t> integers(const ir::Node& node, std::string_view argument) const {
    const ir::Arg* arg = node.find(argument);
    const auto* list = arg == nullptr ? nullptr : arg->get<ir::ArgList>();
    std::vector<std::int64_t> numbers;
    for (const ir::Arg& item : list == nullptr ? ir::ArgList() : *list) {
      const auto* integer = item.get<shape::Int>();
      if (integer == nullptr || !integer->constant()) return {};
      numbers.push_back(*integer->constant());
    }
    return numbers;
  }

 private:
  const ir::Graph& graph_;
  std::vector<int> uses_;
};

}  // namespace modelport::passes
