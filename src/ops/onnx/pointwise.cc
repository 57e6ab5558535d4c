// Rounding, signs, divisions and the other pieces that pointwise cells are made of.
#include "ops/onnx/pointwise.h"

#include <numbers>
#include <numeric>

#include "base/not_finite.h"
#include "ops/onnx/kernels.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Value truths(Lower& l, Value x, bool truth) {
  return l.filled(l.number(std::int64_t{truth}, Dtype::boolean), l.shape(x));
}

Value c_remainder(Lower& l, Value a, Value b) {
  return l.emit("Mod", {a, b}, {{"fmod", {Int(1)}}},
                {l.dtype(a), l.broadcast_shape(l.shape(a), l.shape(b))});
}

}  // namespace

bool is_whole(Dtype dtype) { return is_integral(dtype) || dtype == Dtype::boolean; }

Dtype working_dtype(Dtype dtype) { return kernel_dtype("Add", dtype); }
Dtype sum_dtype(Dtype dtype) { return dtype == Dtype::f16 ? Dtype::f32 : working_dtype(dtype); }

Value power_of(Lower& l, Value x, std::int64_t exponent) {
  if (exponent == 1) return x;
  const Value half = power_of(l, x, exponent / 2);
  const Value even = l.mul(half, half);
  return exponent % 2 == 0 ? even : l.mul(even, x);
}

Value polynomial(Lower& l, Value x, std::span<const double> coefficients) {
  Value result = like(l, x, coefficients.back());
  for (std::size_t i = coefficients.size() - 1; i-- > 0;)
    result = l.add(l.mul(result, x), like(l, x, coefficients[i]));
  return result;
}

Value is_nan(Lower& l, Value x) {
  if (is_whole(l.dtype(x))) return truths(l, x, false);
  const bool narrow = l.dtype(x) == Dtype::bf16 && l.opset() < 20;  // no kernel before
  const Value wide = narrow ? l.cast(x, Dtype::f32) : x;
  return l.emit("IsNaN", {wide}, {}, {Dtype::boolean, l.shape(x)});
}

Value is_infinite(Lower& l, Value x) {
  if (is_whole(l.dtype(x))) return truths(l, x, false);
  // IsInf takes short floats from opset 20 on.
  const bool narrow = l.dtype(x) != Dtype::f32 && l.dtype(x) != Dtype::f64;
  const Value wide = narrow && l.opset() < 20 ? l.cast(x, Dtype::f32) : x;
  return l.emit("IsInf", {wide}, {}, {Dtype::boolean, l.shape(x)});
}

Value is_finite(Lower& l, Value x) {
  if (is_whole(l.dtype(x))) return truths(l, x, true);
  return l.compare("Less", l.unary("Abs", x), like(l, x, kInfinity));  // NaN is less than nothing
}

Value sign_bit(Lower& l, Value x) {
  const Value negative = l.compare("Less", x, like(l, x, 0));
  if (is_whole(l.dtype(x))) return negative;
  // 1 / -0.0 is below zero as well.
  return l.binary("Or", negative, l.compare("Less", l.unary("Reciprocal", x), like(l, x, 0)));
}

Value truncated(Lower& l, Value x) {
  if (is_whole(l.dtype(x))) return x;
  return l.mul(l.unary("Sign", x), l.unary("Floor", l.unary("Abs", x)));
}

Value log1p(Lower& l, Value x) { return l.unary("Log", l.add(x, like(l, x, 1))); }

Value arc_tangent(Lower& l, Value y, Value x) {
  const Value zero = like(l, x, 0);
  const Value on_axis = l.compare("Equal", x, zero);
  const Value slope = l.unary("Atan", l.div(y, l.where(on_axis, like(l, x, 1), x)));
  const Value turn = l.where(l.compare("Less", y, zero), like(l, x, -std::numbers::pi),
                             like(l, x, std::numbers::pi));
  const Value angle = l.where(l.compare("Less", x, zero), l.add(slope, turn), slope);
  return l.where(on_axis, l.mul(l.unary("Sign", y), like(l, x, std::numbers::pi / 2)), angle);
}

Value floor_quotient(Lower& l, Value a, Value b) {
  const Dtype own = l.dtype(a);
  if (const Dtype work = working_dtype(own); work != own && own != Dtype::u8)
    return l.cast(floor_quotient(l, l.cast(a, work), l.cast(b, work)), own);
  if (own == Dtype::u8) return l.div(a, b);  // nothing to round: towards zero is down
  // What Mod leaves is a multiple of b. On integers Mod has the sign of the divisor.
  if (is_whole(own)) return l.div(l.sub(a, l.binary("Mod", a, b)), b);
  // Not Floor(a / b): that is 10 for 1.0 and 0.1, where the quotient is rounded up to it.
  const Value rest = c_remainder(l, a, b);
  const Value exact = l.div(l.sub(a, rest), b);
  const Value crossed = l.compare("Less", l.mul(rest, b), like(l, a, 0));
  const Value quotient = l.unary("Round", l.where(crossed, l.sub(exact, like(l, a, 1)), exact));
  return l.where(l.compare("Equal", b, like(l, b, 0)), l.div(a, b), quotient);
}

Value truncated_quotient(Lower& l, Value a, Value b) { return truncated(l, l.div(a, b)); }

Value floor_remainder(Lower& l, Value a, Value b) {
  const Dtype own = l.dtype(a);
  if (is_whole(own)) return l.binary("Mod", a, b);
  if (const Dtype work = working_dtype(own); work != own)
    return l.cast(floor_remainder(l, l.cast(a, work), l.cast(b, work)), own);
  const Value rest = c_remainder(l, a, b);
  const Value crossed = l.compare("Less", l.mul(rest, b), like(l, a, 0));
  return l.where(crossed, l.add(rest, b), rest);
}

Value truncated_remainder(Lower& l, Value a, Value b) {
  const Dtype own = l.dtype(a);
  if (const Dtype work = working_dtype(own); work != own)
    return l.cast(c_remainder(l, l.cast(a, work), l.cast(b, work)), own);
  return c_remainder(l, a, b);
}

Value all_true(Lower& l, Value truths) {
  std::vector<std::int64_t> axes(l.shape(truths).size());
  std::iota(axes.begin(), axes.end(), 0);
  // Of bytes there is a least one even where there is none.
  return l.cast(l.reduce("ReduceMin", l.cast(truths, Dtype::u8), axes, false), Dtype::boolean);
}

}  // namespace modelport::ops::onnx
