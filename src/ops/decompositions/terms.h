// What decompositions are written with: arithmetic on values and numbers, as calls of other rows.
#pragma once

#include <string_view>
#include <vector>

#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {

/// The type that a decomposition computes in, so that half precision is rounded once, at its end.
Dtype working_dtype(Dtype dtype);

/// The pieces as words for one emitter, and more of them. A number beside a value takes the value's
/// type.
class Terms {
 public:
  explicit Terms(Emitter& emitter) : e(emitter) {}

  Value add(const Operand& a, const Operand& b) { return parts::add(e, a, b); }
  Value sub(const Operand& a, const Operand& b) { return parts::sub(e, a, b); }
  Value mul(const Operand& a, const Operand& b) { return parts::mul(e, a, b); }
  Value div(const Operand& a, const Operand& b) { return parts::div(e, a, b); }
  Value min(const Operand& a, const Operand& b) { return e.call("aten.minimum", {a, b}); }
  Value max(const Operand& a, const Operand& b) { return e.call("aten.maximum", {a, b}); }
  Value both(Value a, Value b) { return e.call("aten.logical_and", {a, b}); }
  Value either(Value a, Value b) { return e.call("aten.logical_or", {a, b}); }
  Value where(Value truth, const Operand& a, const Operand& b) {
    return parts::where(e, truth, a, b);
  }
  /// A row with one operand: `of("exp", x)`.
  Value of(std::string_view name, Value x);
  /// A comparison, with a number or a tensor: `is("lt", x, 0)`.
  Value is(std::string_view name, Value x, const Operand& other);

  Value cast(Value x, Dtype dtype) { return parts::cast(e, x, dtype); }
  /// An operand, cast to the type; kNoValue for None.
  Value in(std::string_view name, Dtype dtype);
  /// The same in the type that the result is computed in.
  Value in(std::string_view name) { return in(name, working_dtype(e.result().dtype)); }
  /// In the result's type.
  Value done(Value x) { return cast(x, e.result().dtype); }

  Value filled(const Shape& shape, const Operand& number, Dtype dtype);
  /// A size as a tensor without axes.
  Value size(const Int& size, Dtype dtype);
  /// 0, 1 ... below n.
  Value range(const Int& n, Dtype dtype = Dtype::i64) { return counted(e, n, dtype); }
  Value reshape(Value x, const Shape& shape) { return viewed(e, x, shape); }
  Value flat(Value x);
  Value unsqueeze(Value x, std::int64_t axis) { return with_axis_at(e, x, axis); }
  Value expand(Value x, const Shape& shape) { return expanded(e, x, shape); }
  Value slice(Value x, std::int64_t axis, const Operand& start, const Operand& end) {
    return e.call("aten.slice.Tensor", {x, axis, start, end});
  }
  /// A reduction over axes: `over("sum.dim_IntList", x, {0})`.
  Value over(std::string_view name, Value x, const Operand& axes, bool keepdim = false);
  /// Over all axes.
  Value total(Value x) { return over("sum.dim_IntList", x, std::nullopt); }
  Value mean(Value x) { return over("mean.dim", x, std::nullopt); }

  Emitter& e;
};

/// The axes of the argument `dim`, as the row has it; all of them where it is None or absent.
std::vector<std::int64_t> axes_of_call(Emitter& e, std::int64_t rank);
bool keeps_axes(Emitter& e);
bool has_parameter(Emitter& e, std::string_view name);
Operand axis_list(const std::vector<std::int64_t>& axes);

}  // namespace modelport::ops::parts
