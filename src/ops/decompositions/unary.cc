// Pointwise operators with one operand.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/not_finite.h"
#include "ops/decompositions/pointwise.h"

namespace modelport::ops::parts {
namespace {

/// No element of a type without infinities is one; every element is what it is.
Value everywhere(Terms& t, Value x, bool truth) { return t.is(truth ? "eq" : "ne", x, x); }

double greatest(Dtype dtype) {
  if (dtype == Dtype::f64) return std::numeric_limits<double>::max();
  if (dtype == Dtype::f16) return 65504;
  if (dtype == Dtype::bf16) return std::ldexp(255.0, 120);
  return static_cast<double>(std::numeric_limits<float>::max());
}

Value signed_infinity(Emitter& e, double which) {
  Terms t(e);
  const Value x = e.tensor("self");
  return is_floating(e.dtype(x)) ? t.is("eq", x, which) : everywhere(t, x, false);
}

}  // namespace

Value same(Emitter& e) {
  const Value x = e.tensor("self");
  return x != kNoValue ? x : e.tensor("input");
}

Value cast_to_result(Emitter& e) { return Terms(e).done(e.tensor("self")); }

Value degrees_to_radians(Emitter& e) {
  Terms t(e);
  return t.done(t.mul(t.in("self"), std::numbers::pi / 180));
}

Value radians_to_degrees(Emitter& e) {
  Terms t(e);
  return t.done(t.mul(t.in("self"), 180 / std::numbers::pi));
}

Value entropy_term(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  const Value inside = t.mul(t.of("neg", x), t.of("log", x));
  const Value outside = t.where(t.is("lt", x, 0), -kInfinity, inside);
  return t.done(t.where(t.is("eq", x, 0), 0.0, outside));
}

// What 1 - erf loses to rounding is lost in double precision.
Value erfc(Emitter& e) {
  Terms t(e);
  return t.done(t.sub(1.0, t.of("erf", t.in("self", Dtype::f64))));
}

Value exp2(Emitter& e) {
  Terms t(e);
  return t.done(e.call("aten.pow.Scalar", {2.0, t.in("self")}));
}

Value frac(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  return t.sub(x, t.of("trunc", x));
}

// The exponent from the logarithm, which may be off by one where it is rounded.
Values frexp(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self", Dtype::f64);
  const Value size = t.of("abs", x);
  const Value none = t.is("eq", x, 0);
  const Value guess = t.add(t.of("floor", t.of("log2", t.where(none, 1.0, size))), 1.0);
  const Value part = t.div(size, e.call("aten.pow.Scalar", {2.0, guess}));
  const Value more = t.cast(t.is("ge", part, 1), Dtype::f64);
  const Value less = t.cast(t.is("lt", part, 0.5), Dtype::f64);
  const Value exponent = t.where(none, 0.0, t.sub(t.add(guess, more), less));
  const Value mantissa = t.div(x, e.call("aten.pow.Scalar", {2.0, exponent}));
  return {t.done(mantissa), t.cast(exponent, Dtype::i32)};
}

Value isfinite(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  if (!is_floating(e.dtype(x))) return everywhere(t, x, true);
  return t.is("eq", t.sub(x, x), 0);  // infinity less itself is no number
}

Value isneginf(Emitter& e) { return signed_infinity(e, -kInfinity); }
Value isposinf(Emitter& e) { return signed_infinity(e, kInfinity); }

Value logit(Emitter& e) {
  Terms t(e);
  Value x = t.in("self");
  if (e.has("eps")) {
    const double eps = e.real_number("eps");
    x = e.call("aten.clamp", {x, eps, 1 - eps});
  }
  return t.done(t.of("log", t.div(x, t.sub(1.0, x))));
}

Value nan_to_num(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  if (!is_floating(e.dtype(x))) return x;
  const auto instead = [&](std::string_view name, double otherwise) {
    return e.has(name) ? e.arg(name) : Operand(otherwise);
  };
  const double most = greatest(e.dtype(x));
  const Value numbers = t.where(t.of("isnan", x), instead("nan", 0), x);
  const Value below = t.where(t.is("eq", x, kInfinity), instead("posinf", most), numbers);
  return t.where(t.is("eq", x, -kInfinity), instead("neginf", -most), below);
}

Value sign(Emitter& e) { return e.call("aten.sign", {e.arg("self")}); }

// Zero has a sign too, which its inverse shows.
Value signbit(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  const Value negative = t.is("lt", x, 0);
  if (!is_floating(e.dtype(x))) return negative;
  return t.either(negative, t.is("eq", t.of("reciprocal", x), -kInfinity));
}

Value sinc(Emitter& e) {
  Terms t(e);
  const Value x = t.mul(t.in("self"), std::numbers::pi);
  return t.done(t.where(t.is("eq", x, 0), 1.0, t.div(t.of("sin", x), x)));
}

Value spherical_bessel_j0(Emitter& e) {
  Terms t(e);
  const Value x = t.in("x");
  const Value wave = t.where(t.is("eq", x, 0), 1.0, t.div(t.of("sin", x), x));
  return t.done(t.where(t.is("eq", t.of("abs", x), kInfinity), 0.0, wave));
}

Value square(Emitter& e) {
  Terms t(e);
  const Value x = t.done(e.tensor("self"));
  return t.mul(x, x);
}

}  // namespace modelport::ops::parts
