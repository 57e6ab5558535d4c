// Pointwise operators with two or three operands.
#include <bit>
#include <numbers>
#include <optional>

#include "base/not_finite.h"
#include "ops/decompositions/pointwise.h"

namespace modelport::ops::parts {
namespace {

/// The extreme of two, where what is no number does not count.
Value extreme_of_numbers(Emitter& e, std::string_view name) {
  Terms t(e);
  const Value a = t.in("self"), b = t.in("other");
  const Value extreme = e.call(name, {a, b});
  if (!is_floating(e.result().dtype)) return extreme;
  return t.done(t.where(t.of("isnan", a), b, t.where(t.of("isnan", b), a, extreme)));
}

/// x times a logarithm, and 0 where x is, unless the logarithm has no argument.
Value times_log(Emitter& e, std::string_view log) {
  Terms t(e);
  const Value x = t.in("self"), y = t.in("other");
  const Value product = t.where(t.is("eq", x, 0), 0.0, t.mul(x, t.of(log, y)));
  return t.done(t.where(t.of("isnan", y), kNan, product));
}

/// Infinities that are equal are their own result: their difference is no number.
Value log_of_sum(Emitter& e, double base) {
  Terms t(e);
  const Value a = t.in("self"), b = t.in("other");
  const Value away = t.mul(t.of("abs", t.sub(a, b)), -base);
  const Value more = t.div(t.of("log1p", t.of("exp", away)), base);
  const Value same = t.both(t.of("isinf", a), t.is("eq", a, b));
  return t.done(t.where(same, a, t.add(t.max(a, b), more)));
}

/// A number that is known now.
std::optional<std::int64_t> known_number(Emitter& e, std::string_view name) {
  const Int* number = e.call().arg(name).get<Int>();
  return number == nullptr ? std::nullopt : number->constant();
}

Value power_of(Terms& t, Value x, std::int64_t exponent) {
  if (exponent == 1) return x;
  const Value half = power_of(t, x, exponent / 2);
  const Value even = t.mul(half, half);
  return exponent % 2 == 0 ? even : t.mul(even, x);
}

/// Powers with negative exponents, rounded towards zero.
Value whole_reciprocal(Terms& t, Value x, Value exponent) {
  const Value odd = t.is("ne", t.e.call("aten.fmod.Scalar", {exponent, 2}), 0);
  const Value of_minus_one = t.where(odd, x, t.mul(x, x));
  const Value is_unit = t.is("eq", t.of("abs", x), 1);
  return t.where(is_unit, of_minus_one, 0);
}

/// The bits of an exponent that is not negative, beyond which a power has wrapped around to zero,
/// or the exponent has no more.
std::int64_t exponent_bits(std::optional<std::int64_t> base, Dtype dtype) {
  const std::int64_t width = bit_count(dtype);
  if (base && *base % 2 == 0) return std::countr_zero(static_cast<std::uint64_t>(width));
  return is_signed(dtype) ? width - 1 : width;
}

}  // namespace

Value copysign(Emitter& e) {
  Terms t(e);
  const Value size = t.of("abs", t.in("self"));
  return t.done(t.where(t.of("signbit", t.in("other")), t.of("neg", size), size));
}

Value fmax(Emitter& e) { return extreme_of_numbers(e, "aten.maximum"); }
Value fmin(Emitter& e) { return extreme_of_numbers(e, "aten.minimum"); }

Value heaviside(Emitter& e) {
  Terms t(e);
  const Value x = t.done(e.tensor("self"));
  const Value step = t.done(t.is("gt", x, 0));
  return t.where(t.is("eq", x, 0), t.done(e.tensor("values")), step);
}

// Squares in double precision do not overflow.
Value hypot(Emitter& e) {
  Terms t(e);
  const Value a = t.in("self", Dtype::f64), b = t.in("other", Dtype::f64);
  return t.done(t.of("sqrt", t.add(t.mul(a, a), t.mul(b, b))));
}

Value isclose(Emitter& e) {
  Terms t(e);
  const Value a = e.tensor("self"), b = e.tensor("other");
  const Value exact = t.is("eq", a, b);
  if (e.dtype(a) == Dtype::boolean) return exact;
  const Value x = t.cast(a, Dtype::f64), y = t.cast(b, Dtype::f64);
  const Value allowed = t.add(t.mul(t.of("abs", y), e.arg("rtol")), e.arg("atol"));
  const Value away = t.of("abs", t.sub(x, y));
  const Value near = t.both(t.of("isfinite", away), t.is("le", away, allowed));
  const Value close = t.either(exact, near);
  if (!e.call().flag("equal_nan")) return close;
  return t.either(close, t.both(t.of("isnan", x), t.of("isnan", y)));
}

Value ldexp(Emitter& e) {
  Terms t(e);
  const Dtype own = working_dtype(e.result().dtype);
  return t.done(t.mul(t.in("self"), t.cast(e.call("aten.pow.Scalar", {2.0, t.in("other")}), own)));
}

Value logaddexp(Emitter& e) { return log_of_sum(e, 1); }
Value logaddexp2(Emitter& e) { return log_of_sum(e, std::numbers::ln2); }

Value maximum(Emitter& e) { return e.call("aten.maximum", {e.arg("self"), e.arg("other")}); }
Value minimum(Emitter& e) { return e.call("aten.minimum", {e.arg("self"), e.arg("other")}); }

Value remainder(Emitter& e) {
  return e.call("aten.remainder.Tensor", {e.arg("self"), e.arg("other")});
}

// By squaring, as torch does it.
Value whole_power(Emitter& e) {
  Terms t(e);
  const Dtype own = e.result().dtype;
  const Value x = t.in("self", own);
  const auto known_exponent = known_number(e, "exponent");
  if (known_exponent == 0) return t.filled(e.result().shape, 1, own);
  if (known_exponent && *known_exponent > 0) return power_of(t, x, *known_exponent);
  const Value exponent = t.in("exponent", own);
  const std::int64_t bits = exponent_bits(known_number(e, "self"), own);
  Value rest = exponent, square = x, product = kNoValue;
  for (std::int64_t bit = 0; bit < bits; ++bit) {
    const Value odd = t.is("ne", e.call("aten.fmod.Scalar", {rest, 2}), 0);
    const Value factor = t.where(odd, square, 1);
    product = bit == 0 ? factor : t.mul(product, factor);
    if (bit + 1 == bits) break;
    rest = e.call("aten.div.Scalar_mode", {rest, 2}, {{"rounding_mode", "trunc"}});
    square = t.mul(square, square);
  }
  if (const std::int64_t all = exponent_bits(std::nullopt, own); bits < all)
    product = t.where(t.is("ge", exponent, std::int64_t{1} << bits), 0, product);
  if (!is_signed(own)) return product;
  return t.where(t.is("lt", exponent, 0), whole_reciprocal(t, x, exponent), product);
}

Value reversed_sub(Emitter& e) {
  return e.call("aten.sub.Tensor", {e.arg("other"), e.arg("self")}, {{"alpha", e.arg("alpha")}});
}

Value xlog1py(Emitter& e) { return times_log(e, "log1p"); }
Value xlogy(Emitter& e) { return times_log(e, "log"); }

Value addcdiv(Emitter& e) {
  Terms t(e);
  const Value part = t.div(t.in("tensor1"), t.in("tensor2"));
  return t.done(t.add(t.in("self"), t.mul(part, e.arg("value"))));
}

Value addcmul(Emitter& e) {
  Terms t(e);
  const Value part = t.mul(t.in("tensor1"), t.in("tensor2"));
  emit::Operand factor = e.arg("value");
  const double* real = factor.arg.get<double>();
  // Among integers torch cuts off its fraction.
  if (real != nullptr && is_integral(e.result().dtype))
    factor = emit::Operand(Int(static_cast<std::int64_t>(*real)));
  return t.done(t.add(t.in("self"), t.mul(part, factor)));
}

Value at_least(Emitter& e) {
  const bool tensor = e.tensor("min") != kNoValue;
  return tensor ? e.call("aten.maximum", {e.arg("self"), e.arg("min")})
                : e.call("aten.clamp", {e.arg("self"), e.arg("min")});
}

Value at_most(Emitter& e) {
  const bool tensor = e.tensor("max") != kNoValue;
  return tensor ? e.call("aten.minimum", {e.arg("self"), e.arg("max")})
                : e.call("aten.clamp", {e.arg("self"), std::nullopt, e.arg("max")});
}

Value lerp(Emitter& e) {
  Terms t(e);
  const Value start = t.in("self");
  return t.done(t.add(start, t.mul(t.sub(t.in("end"), start), t.in("weight"))));
}

Value where(Emitter& e) {
  return e.call("aten.where.self", {e.arg("condition"), e.arg("self"), e.arg("other")});
}

}  // namespace modelport::ops::parts
