// The program: values with a dtype and a symbolic shape, nodes in execution order, weights by name,
// dimensions, guards and assumptions. Functional: a value is written once, in-place operators and
// views of them do not exist here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/one_of.h"
#include "shape/dims.h"
#include "shape/int.h"
#include "shape/real.h"

namespace modelport::ir {

struct ValueId {
  std::uint32_t index = UINT32_MAX;
  auto operator<=>(const ValueId&) const = default;
};
struct NodeId {
  std::uint32_t index = UINT32_MAX;
  auto operator<=>(const NodeId&) const = default;
};
struct PlaceId {
  std::uint32_t index = 0;  // 0: unknown
  auto operator<=>(const PlaceId&) const = default;
};

struct TensorType {
  Dtype dtype = Dtype::f32;
  std::vector<shape::Int> shape;
  bool operator==(const TensorType&) const = default;
};
/// A number read out of a tensor; the expression is the symbol that stands for it from there on.
using Symbol = OneOf<shape::Int, shape::Real, shape::Bool>;
struct ScalarType {
  Symbol symbol;
  bool operator==(const ScalarType&) const = default;
};
using Type = OneOf<TensorType, ScalarType>;

struct None {
  bool operator==(const None&) const = default;
};
struct Arg;
using ArgList = std::vector<Arg>;
/// An argument of an operator. Plain numbers are bool, Int and double; Real and Bool are symbolic.
struct Arg {
  OneOf<None, ValueId, bool, shape::Int, double, shape::Real, shape::Bool, std::string, Dtype,
        ArgList>
      value;
  bool operator==(const Arg&) const;
  bool is_none() const { return std::holds_alternative<None>(value); }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
};
/// Names come from the operator's schema; arguments that have their default value are left out.
struct NamedArg {
  std::string name;
  Arg arg;
  bool operator==(const NamedArg&) const = default;
};

struct Node {
  std::string op;  // "aten.linear", "aten.add.Tensor"
  std::vector<NamedArg> args;
  std::vector<ValueId> results;
  PlaceId place;
  const Arg* find(std::string_view name) const;
};

enum class Origin : std::uint8_t { input, weight, node };
enum class WeightKind : std::uint8_t {
  parameter,
  buffer,
  buffer_not_saved,  // a buffer that is not part of the checkpoint
  constant,          // a tensor that the model made and that depends on no input
};

struct Value {
  Type type;
  Origin origin = Origin::node;
  std::string name;  // of inputs (dotted path) and weights (checkpoint name, const.N); empty for
                     // results of nodes
  NodeId producer;   // of results of nodes
  WeightKind weight_kind = WeightKind::parameter;
  const TensorType& tensor() const { return std::get<TensorType>(type); }
};

struct Output {
  std::string name;  // dotted path in the model's own output structure
  Arg value;         // a value, or a number for outputs that are not tensors
  bool operator==(const Output&) const = default;
};

/// What a buffer holds after the program ran.
struct Mutation {
  ValueId buffer;
  ValueId value;
  bool operator==(const Mutation&) const = default;
};

/// The model branched in Python on this value: the program is right only where it is as it was in
/// the example run.
struct Assumption {
  ValueId value;  // a tensor with one element
  std::variant<bool, std::int64_t, double> expected;
  PlaceId place;
  std::string what = {};  // in words, where more is known than that the model branched
  bool operator==(const Assumption&) const = default;
};

struct Place {
  SourceLine where;
  std::string module_path;
  bool operator==(const Place&) const = default;
};

class Graph {
 public:
  Graph();
  Graph(const Graph& other);
  Graph(Graph&& other) noexcept(false);  // as moving a deque may need memory
  Graph& operator=(const Graph& other);
  Graph& operator=(Graph&& other) noexcept(false);
  ~Graph();

  std::string name = "graph";
  std::vector<ValueId> inputs;
  std::vector<ValueId> weights;
  std::vector<Output> outputs;
  std::vector<Mutation> mutations;
  std::vector<Assumption> assumptions;
  std::vector<shape::Dim> dims;      // every symbol that occurs
  std::vector<shape::Guard> guards;  // that must hold beyond the ranges in dims

  ValueId add_input(std::string name, Type type);
  ValueId add_weight(std::string name, TensorType type, WeightKind kind);
  NodeId add_node(std::string op, std::vector<NamedArg> args, std::vector<Type> results,
                  PlaceId place = {});
  void rename_input(ValueId id, std::string name);
  PlaceId add_place(const SourceLine& where, std::string_view module_path);

  const Value& value(ValueId id) const { return values_[id.index]; }
  Value& value(ValueId id) { return values_[id.index]; }
  const Node& node(NodeId id) const { return nodes_[id.index]; }
  Node& node(NodeId id) { return nodes_[id.index]; }
  const Place& place(PlaceId id) const { return places_[id.index]; }
  std::size_t place_count() const { return places_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::deque<Value>& values() const { return values_; }
  /// By name, inputs and weights alike; nothing if there is none.
  const ValueId* find_input(std::string_view name) const;
  const ValueId* find_weight(std::string_view name) const;

  /// Keeps the nodes marked true (indices of `nodes()`), renumbers, and drops values nobody
  /// produces any more, and inputs and weights that are no longer listed. Throws InternalError, and
  /// changes nothing, if something that stays mentions what would go.
  void keep_nodes(const std::vector<bool>& keep);
  /// Replaces symbols everywhere: types, arguments, outputs, guards. Dims that are replaced go, or
  /// are renamed where the replacement is a symbol of its own; guards that become certain go.
  void substitute(const shape::Substitution& replacements);

 private:
  /// Lets names be looked up without making a string of them.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };
  using ByName = std::unordered_map<std::string, ValueId, NameHash, std::equal_to<>>;

  std::deque<Value> values_;  // references stay valid while nodes are added
  std::vector<Node> nodes_;
  std::vector<Place> places_{Place{}};
  ByName inputs_by_name_;
  ByName weights_by_name_;
  std::unordered_multimap<std::size_t, PlaceId> places_by_hash_;
};

/// Calls `visit(ValueId)` for each value that the argument mentions, lists included.
template <class Visit>
void for_each_value(const Arg& arg, Visit&& visit) {
  if (const ValueId* id = arg.get<ValueId>()) visit(*id);
  if (const ArgList* list = arg.get<ArgList>()) {
    for (const Arg& item : *list) for_each_value(item, visit);
  }
}

/// Calls `visit(ValueId)` for each value that the node takes.
template <class Visit>
void for_each_operand(const Node& node, Visit&& visit) {
  for (const NamedArg& named : node.args) for_each_value(named.arg, visit);
}

/// Calls `visit(ValueId)` for each value that is needed after the last node: by an output, for a
/// buffer or for a condition.
template <class Visit>
void for_each_end(const Graph& graph, Visit&& visit) {
  for (const Output& output : graph.outputs) for_each_value(output.value, visit);
  for (const Mutation& mutation : graph.mutations) visit(mutation.value);
  for (const Assumption& assumption : graph.assumptions) visit(assumption.value);
}

/// Whether two programs do the same: same inputs, nodes, arguments, outputs, mutations and
/// assumptions; places, dims, guards, the graph's name and weights that nobody uses aside. Symbols
/// are compared by name, and so are weights.
bool same_program(const Graph& a, const Graph& b);

/// Drops nodes whose results nobody uses; random operators too (they have no other effect on
/// values). Kept: what assumptions test, nodes that give a symbol which is still mentioned its
/// value (`item`, `nonzero`), and nodes without results (they can only be checks).
void drop_dead_nodes(Graph& graph);

}  // namespace modelport::ir

// Compiled in graph.cc alone.
extern template struct modelport::OneOf<modelport::shape::Int, modelport::shape::Real,
                                        modelport::shape::Bool>;
extern template struct modelport::OneOf<modelport::ir::TensorType, modelport::ir::ScalarType>;
extern template struct modelport::OneOf<modelport::ir::None, modelport::ir::ValueId, bool,
                                        modelport::shape::Int, double, modelport::shape::Real,
                                        modelport::shape::Bool, std::string, modelport::Dtype,
                                        modelport::ir::ArgList>;
extern template class std::vector<modelport::ir::Arg>;
extern template class std::vector<modelport::ir::NamedArg>;
extern template class std::vector<modelport::ir::Node>;
extern template class std::vector<modelport::ir::Type>;
extern template class std::vector<modelport::ir::ValueId>;
extern template class std::deque<modelport::ir::Value>;
