// A graph written anew from another one: nodes are copied, left out, or preceded by new ones.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace modelport::passes {

class Rebuild {
 public:
  /// Takes over inputs, weights and dimensions.
  explicit Rebuild(const ir::Graph& source);

  /// The value of the new graph that an old one became.
  ir::ValueId operator()(ir::ValueId old) const { return value_of_[old.index]; }
  void copy(const ir::Node& node);
  /// A node on values of the new graph, and its results.
  std::vector<ir::ValueId> add(std::string op, std::vector<ir::NamedArg> args,
                               std::vector<ir::Type> types, ir::PlaceId place);
  /// An ONNX node on values of the new graph, in the place of an old one.
  ir::ValueId emit(std::string op, const std::vector<ir::ValueId>& inputs,
                   std::vector<ir::NamedArg> attributes, ir::TensorType type, ir::PlaceId place);
  ir::ValueId ints(const std::vector<std::int64_t>& numbers);
  /// A constant without axes.
  ir::ValueId number(double number, Dtype dtype);
  void replace(ir::ValueId old, ir::ValueId by) { value_of_[old.index] = by; }
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }
  ir::Arg translated(const ir::Arg& arg) const;
  ir::Graph& graph() { return graph_; }
  /// What the new graph assumes beside what the old one did.
  void assume(ir::Assumption assumption) { graph_.assumptions.push_back(std::move(assumption)); }
  /// The new graph; outputs, state and assumptions are those of the old one.
  ir::Graph finish() &&;

 private:
  const ir::Graph& source_;
  ir::Graph graph_;
  std::vector<ir::ValueId> value_of_;
};

}  // namespace modelport::passes
