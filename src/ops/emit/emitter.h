// Lowers calls of operators, whatever the target: the call with its operands and results, its place
// in the model, constants, refusals, calls of other rows, and where sizes can be read from. Targets
// derive from it and add nodes of their own; decompositions are written against it.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/emit/size_sources.h"
#include "ops/table/call.h"

namespace modelport::ops::emit {

/// As C++ casts it: what the type does not hold wraps around.
std::int64_t wrapped(std::int64_t value, Dtype dtype);

/// What a call takes in a decomposition: a value, a number, text, a dtype, a list, or nothing
/// (`std::nullopt`).
struct Operand {
  ir::Arg arg;
  Operand(ir::Arg any) : arg(std::move(any)) {}
  Operand(Value value) : arg{value} {}
  Operand(bool truth) : arg{truth} {}
  Operand(int number) : arg{Int(number)} {}
  Operand(std::int64_t number) : arg{Int(number)} {}
  Operand(double number) : arg{number} {}
  Operand(const Int& size) : arg{size} {}
  Operand(Dtype dtype) : arg{dtype} {}
  Operand(const char* text) : arg{std::string(text)} {}
  Operand(std::nullopt_t) {}
  Operand(const Values& values) : arg(list_of(values)) {}
  Operand(const Shape& sizes) : arg(list_of(sizes)) {}
  Operand(std::initializer_list<Operand> items) : arg(list_of(items)) {}

 private:
  template <class Items>
  static ir::Arg list_of(const Items& items) {
    ir::ArgList list;
    for (const auto& item : items) list.push_back(Operand(item).arg);
    return {std::move(list)};
  }
};
struct NamedOperand {
  std::string_view name;
  Operand operand;
};

/// What users are told where a target has no way.
struct TargetFacts {
  std::string_view name;              // "onnx"
  std::vector<std::string> ways_out;  // in words
};

class Emitter {
 public:
  /// Nodes are appended to `graph`; `dims` has its symbols.
  Emitter(ir::Graph& graph, shape::Dims& dims, TargetFacts target)
      : graph_(graph), dims_(dims), target_(std::move(target)) {}
  virtual ~Emitter() = default;
  Emitter(const Emitter&) = delete;
  Emitter& operator=(const Emitter&) = delete;

  /// Lowers one call whose arguments are values of the target graph. One value a result; throws
  /// ExportError where the row refuses.
  Values lower(const OpDef& op, std::span<const ir::NamedArg> args,
               std::span<const ir::Type> results, ir::PlaceId place);
  /// Why the target has no way for a row, before it is tried; empty where it has one.
  virtual std::string_view refusal(const OpDef& op) const = 0;
  const TargetFacts& target() const { return target_; }
  ir::Graph& graph() { return graph_; }
  const ir::Graph& graph() const { return graph_; }

  // --- the call that is being lowered -----------------------------------------------------------
  Call& call() { return *call_; }
  bool has(std::string_view name) const { return call_->has(name); }
  /// The argument as it is, or the schema's default.
  Operand arg(std::string_view name) const { return call_->arg(name); }
  /// A tensor operand; kNoValue for None.
  Value tensor(std::string_view name) const;
  Values ins(std::string_view name);  // a list of tensors; kNoValue where an entry is None
  /// A plain number that the graph knows now; symbolic ones fail.
  double real_number(std::string_view name);
  const ir::TensorType& result(std::size_t index = 0) const;
  std::size_t result_count() const { return results_.size(); }
  /// An axis counted from the front.
  std::int64_t axis(std::string_view name, std::int64_t rank);
  [[noreturn]] void refuse(std::string_view why) const;

  // --- other rows -------------------------------------------------------------------------------
  /// Another operator on these operands, by position and by name; its first result. Types of
  /// results come from that operator's own rule.
  Value call(std::string_view op, std::initializer_list<Operand> operands,
             std::initializer_list<NamedOperand> named = {}) {
    return calls(op, operands, named)[0];
  }
  /// The same with all results.
  Values calls(std::string_view op, std::initializer_list<Operand> operands,
               std::initializer_list<NamedOperand> named = {});

  /// A row with arguments by name.
  Values calls(const OpDef& op, const std::vector<ir::NamedArg>& args);

  const ir::TensorType& type(Value x) const { return graph_.value(x).tensor(); }
  Dtype dtype(Value x) const { return type(x).dtype; }
  const Shape& shape(Value x) const { return type(x).shape; }
  std::int64_t rank(Value x) const { return static_cast<std::int64_t>(shape(x).size()); }

  // --- complex numbers, which no target has: pairs of reals along a last axis of 2 --------------
  Value as_pairs(Value complex);  // c64[...] -> f32[..., 2]
  Value from_pairs(Value pairs);  // f32[..., 2] -> c64[...]
  /// Whether the target has a Fourier transform of its own for signals of this size that is to be
  /// preferred to products with waves.
  virtual bool has_transform(const Int&, Dtype) const { return false; }
  /// It, unscaled, along the last axis: of real parts, and of imaginary ones if there are any; both
  /// parts of the result.
  virtual Values transform(const Values& signal, const Int& n, bool inverse);

  // --- constants and sizes ----------------------------------------------------------------------
  Value ints(const std::vector<std::int64_t>& numbers);  // i64[n]
  Value number(double value, Dtype dtype);               // without axes
  Value number(std::int64_t value, Dtype dtype);
  Value constant(Dtype dtype, const std::vector<std::int64_t>& shape,
                 const std::vector<double>& values);
  Value constant_ints(Dtype dtype, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& values);
  /// Which tensors of the target graph have which sizes.
  SizeSources<Value>& sources() { return sources_; }
  /// Whether the size is at least `least` for every admissible input.
  bool surely_at_least(const Int& size, std::int64_t least) const;

 protected:
  /// Lowers the call that is set, by the row's cell.
  virtual Values lower_row(const OpDef& op) = 0;
  /// The target's own node for a constant.
  virtual Value add_constant(ir::TensorType type, std::vector<ir::NamedArg> contents) = 0;
  /// What a cell says; `direct` is what the target makes of one operator of its own.
  template <class Target, class DirectCall>
  Values lower_by(const Cell<Target>& cell, Target& target, DirectCall direct);

  std::span<const ir::Type> results() const { return results_; }
  ir::PlaceId place() const { return place_; }
  shape::Dims& dims() { return dims_; }

 private:
  ir::Graph& graph_;
  shape::Dims& dims_;
  TargetFacts target_;
  Call* call_ = nullptr;
  std::span<const ir::Type> results_;
  ir::PlaceId place_;
  SizeSources<Value> sources_;
  std::unordered_map<std::string, Value> constants_;
  std::unordered_map<std::uint32_t, Value> pairs_of_;  // what from_pairs was given
};

template <class Target, class DirectCall>
Values Emitter::lower_by(const Cell<Target>& cell, Target& target, DirectCall direct) {
  if (const auto* one = std::get_if<Direct>(&cell)) return direct(one->op);
  if (const auto* custom = std::get_if<Custom<Target>>(&cell)) return custom->lower(target);
  if (const auto* parts = std::get_if<Decompose>(&cell))
    return parts->many != nullptr ? parts->many(*this) : Values{parts->one(*this)};
  if (const auto* refused = std::get_if<Refuse>(&cell)) refuse(refused->reason);
  refuse("no rule yet");
}

/// Nodes that only say that pairs are complex numbers, or the other way round; passes drop them.
inline constexpr std::string_view kAsPairs = "pairs.of_complex";
inline constexpr std::string_view kFromPairs = "pairs.to_complex";

/// A list of integers as an argument holds it.
ir::Arg int_list(const std::vector<std::int64_t>& numbers);

}  // namespace modelport::ops::emit
