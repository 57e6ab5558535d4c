// Builds ONNX nodes in our own IR, one call of an operator after the other. Cells of the operator
// table are written against this: operands by name, typed values, constants, sizes.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/onnx/numbers.h"
#include "ops/table/call.h"

namespace modelport::ops {

using Value = ir::ValueId;
using Values = std::vector<Value>;
/// An optional input that is left out.
inline constexpr Value kNoValue{};

struct Attribute {
  std::string name;
  ir::Arg value;
};
using Attributes = std::vector<Attribute>;
/// A list of integers as an attribute holds it.
ir::Arg int_list(const std::vector<std::int64_t>& numbers);

class Lower {
 public:
  struct Settings {
    int opset = 23;
  };
  /// Nodes are appended to `graph`; `dims` has its symbols.
  Lower(ir::Graph& graph, shape::Dims& dims, Settings settings);
  Lower(const Lower&) = delete;
  Lower& operator=(const Lower&) = delete;

  /// Lowers one call whose arguments are values of the target graph. One value a result; throws
  /// ExportError where the row refuses.
  Values lower(const OpDef& op, std::span<const ir::NamedArg> args,
               std::span<const ir::Type> results, ir::PlaceId place);
  /// The same for another operator, from inside a cell: what a row is made of. Types of the results
  /// come from that operator's own rule.
  Values lower_as(std::string_view op, std::vector<ir::NamedArg> args);
  int opset() const { return settings_.opset; }
  ir::Graph& graph() { return graph_; }

  // --- the call that is being lowered -----------------------------------------------------------
  Call& call() { return *call_; }
  bool has(std::string_view name) const { return call_->has(name); }
  /// A tensor; a number in its place as a constant without axes; kNoValue for None.
  Value in(std::string_view name);
  Value in(std::string_view name, Dtype dtype);
  Values ins(std::string_view name);  // a list of tensors; kNoValue where an entry is None
  /// A number as a constant: bool, i64 or f64 by what it is, or of this type.
  Value number_of(const ir::Arg& arg, std::optional<Dtype> dtype = std::nullopt);
  /// A plain number that the graph knows now; symbolic ones fail.
  double real_number(std::string_view name);
  const ir::TensorType& result(std::size_t index = 0) const;
  std::size_t result_count() const { return results_.size(); }
  /// An axis counted from the front.
  std::int64_t axis(std::string_view name, std::int64_t rank);
  [[noreturn]] void refuse(std::string_view why) const;

  // --- nodes ------------------------------------------------------------------------------------
  Value emit(std::string_view op, const Values& inputs, const Attributes& attributes,
             ir::TensorType type);
  /// With the type of the call's (first) result.
  Value emit(std::string_view op, const Values& inputs, const Attributes& attributes = {}) {
    return emit(op, inputs, attributes, result());
  }
  Values emit_many(std::string_view op, const Values& inputs, const Attributes& attributes,
                   std::vector<ir::TensorType> types);

  const ir::TensorType& type(Value x) const { return graph_.value(x).tensor(); }
  Dtype dtype(Value x) const { return type(x).dtype; }
  const Shape& shape(Value x) const { return type(x).shape; }
  std::int64_t rank(Value x) const { return static_cast<std::int64_t>(shape(x).size()); }

  // --- constants and sizes ----------------------------------------------------------------------
  Value ints(const std::vector<std::int64_t>& numbers);  // i64[n]
  Value number(double value, Dtype dtype);               // without axes
  Value number(std::int64_t value, Dtype dtype);
  Value constant(Dtype dtype, const std::vector<std::int64_t>& shape,
                 const std::vector<double>& values);
  Value constant_ints(Dtype dtype, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& values);
  Value size(const Int& x) { return numbers_.size(x); }              // i64[1]
  Value sizes(const Shape& shape) { return numbers_.sizes(shape); }  // i64[n]
  Value scalar(const Int& x);                                        // i64[]
  LowerNumbers& numbers() { return numbers_; }
  /// Whether the size is at least `least` for every admissible input.
  bool surely_at_least(const Int& size, std::int64_t least) const;

  // --- what most cells need ---------------------------------------------------------------------
  Value cast(Value x, Dtype dtype);
  Value unary(std::string_view op, Value x);             // type of x
  Value binary(std::string_view op, Value a, Value b);   // Add, Mul ...: type of a
  Value compare(std::string_view op, Value a, Value b);  // Equal, Less ...: bool
  Value logical_not(Value x);
  Value where(Value condition, Value a, Value b);
  Value add(Value a, Value b) { return binary("Add", a, b); }
  Value sub(Value a, Value b) { return binary("Sub", a, b); }
  Value mul(Value a, Value b) { return binary("Mul", a, b); }
  Value div(Value a, Value b) { return binary("Div", a, b); }
  Value reduce(std::string_view op, Value x, const std::vector<std::int64_t>& axes, bool keepdim);
  Value matmul(Value a, Value b);

  Value reshape(Value x, const Shape& shape);
  Value expand(Value x, const Shape& shape);  // axes of size 1 grow, axes in front are added
  Value transpose(Value x, const std::vector<std::int64_t>& order);
  Value swap_axes(Value x, std::int64_t a, std::int64_t b);
  Value unsqueeze(Value x, const std::vector<std::int64_t>& axes);  // axes of the result
  Value squeeze(Value x, const std::vector<std::int64_t>& axes);
  /// Elements start, start + step, ... below end; bounds as Python has them, but inside the axis.
  Value slice(Value x, std::int64_t axis, const Int& start, const Int& end, const Int& step = 1);
  Value concat(const Values& parts, std::int64_t axis);
  Value gather(Value x, Value indices, std::int64_t axis);
  /// 0, 1, ... n - 1
  Value range(const Int& n);
  /// A tensor of this shape, all `value` (which has no axes).
  Value filled(Value value, const Shape& shape);

  // --- complex numbers: pairs of reals along a last axis of 2
  // -------------------------------------
  Value as_pairs(Value complex);  // c64[...] -> f32[..., 2]
  Value from_pairs(Value pairs);  // f32[..., 2] -> c64[...]
  Value real_part(Value complex);
  Value imaginary_part(Value complex);
  Value make_complex(Value real, Value imaginary);

  /// The shape that sizes broadcast to, as far as their form tells.
  Shape broadcast_shape(const Shape& a, const Shape& b) const;

 private:
  Values direct_call(std::string_view onnx_op);

  ir::Graph& graph_;
  shape::Dims& dims_;
  Settings settings_;
  LowerNumbers numbers_;
  Call* call_ = nullptr;
  std::span<const ir::Type> results_;
  ir::PlaceId place_;
  std::unordered_map<std::string, Value> constants_;
  std::unordered_map<std::uint32_t, Value> pairs_of_;  // what from_pairs was given
};

}  // namespace modelport::ops
