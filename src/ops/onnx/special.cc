// Special functions: errors below 1e-6 of the value, which is what single precision shows.
#include "ops/onnx/special.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/not_finite.h"
#include "ops/onnx/pointwise.h"

namespace modelport::ops::onnx {
namespace {

constexpr double kPi = std::numbers::pi;

/// In eleven bits a series loses what it is summed for.
Value operand(Lower& l) {
  const Dtype dtype = working_dtype(l.result().dtype);
  return l.in("self", dtype == Dtype::f16 ? Dtype::f32 : dtype);
}

/// sin(pi x), cos(pi x) and their quotient need x without its whole part, or they lose all digits.
Value half_turns(Lower& l, Value x) {
  return l.mul(l.sub(x, l.unary("Round", x)), like(l, x, kPi));
}

Value whole_and(Lower& l, Value x, std::string_view compare) {
  return l.binary("And", l.compare("Equal", x, l.unary("Floor", x)),
                  l.compare(compare, x, like(l, x, 0)));
}

constexpr int kShift = 6;  // Stirling's series is taken this far to the right

/// Both gamma functions by reflection: for x below 1/2 they are read off 1 - x.
struct Reflected {
  Value below;  // x < 1/2
  Value point;  // at least 1/2
};
Reflected reflected(Lower& l, Value x) {
  const Value below = l.compare("Less", x, like(l, x, 0.5));
  return {below, l.where(below, l.sub(like(l, x, 1), x), x)};
}

/// exp(x^2) erfc(x) for x >= 0 (Numerical Recipes, fractional error below 1.2e-7).
Value scaled_erfc(Lower& l, Value x) {
  constexpr std::array kCoefficients{-1.26551223, 1.00002368,  0.37409196, 0.09678418,  -0.18628806,
                                     0.27886807,  -1.13520398, 1.48851587, -0.82215223, 0.17087277};
  const Value one = like(l, x, 1);
  const Value t = l.unary("Reciprocal", l.add(one, l.mul(x, like(l, x, 0.5))));
  return l.mul(t, l.unary("Exp", polynomial(l, t, kCoefficients)));
}

/// Giles: polynomials in w = -log(1 - x^2), one for the middle and one for the tails.
Value erfinv_of(Lower& l, Value x, Value one_minus_square) {
  constexpr std::array kMiddle{1.50140941,     0.246640727,    -0.00417768164,
                               -0.00125372503, 0.00021858087,  -4.39150654e-06,
                               -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
  constexpr std::array kTails{2.83297682,    1.00167406,     0.00943887047,
                              -0.0076224613, 0.00573950773,  -0.00367342844,
                              0.00134934322, 0.000100950558, -0.000200214257};
  const Value one = like(l, x, 1);
  const Value w = l.unary("Neg", l.unary("Log", one_minus_square));
  const Value middle = polynomial(l, l.sub(w, like(l, x, 2.5)), kMiddle);
  const Value tails = polynomial(l, l.sub(l.unary("Sqrt", w), like(l, x, 3)), kTails);
  const Value factor = l.where(l.compare("Less", w, like(l, x, 5)), middle, tails);
  const Value edge = l.compare("Equal", l.unary("Abs", x), one);
  return l.where(edge, l.mul(x, like(l, x, kInfinity)), l.mul(factor, x));
}

struct Bessel {
  std::array<double, 7> small;  // in (x / 3.75)^2, below 3.75
  std::array<double, 9> large;  // in 3.75 / x, times sqrt(x) exp(-x)
};
// Abramowitz and Stegun 9.8.1 to 9.8.4.
constexpr Bessel kI0{{1, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813},
                     {0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706,
                      0.02635537, -0.01647633, 0.00392377}};
constexpr Bessel kI1{{0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411},
                     {0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967,
                      -0.02895312, 0.01787654, -0.00420059}};

/// exp(-|x|) I(|x|); of order 1 without the factor x for small ones.
Value bessel(Lower& l, Value x, const Bessel& series, bool scaled) {
  const bool odd = series.small[0] != 1;
  const Value size = l.unary("Abs", x);
  const Value edge = like(l, x, 3.75);
  const Value t = l.div(x, edge);
  const Value near = polynomial(l, l.mul(t, t), series.small);
  const Value inside = odd ? l.mul(near, size) : near;
  const Value far = l.binary("Max", size, edge);
  const Value outside = l.div(polynomial(l, l.div(edge, far), series.large), l.unary("Sqrt", far));
  const Value is_near = l.compare("Less", size, edge);
  const Value even =
      scaled ? l.where(is_near, l.mul(inside, l.unary("Exp", l.unary("Neg", size))), outside)
             : l.where(is_near, inside, l.mul(outside, l.unary("Exp", size)));
  return odd ? l.mul(even, l.unary("Sign", x)) : even;
}

}  // namespace

Values digamma(Lower& l) {
  const Value x = operand(l);
  const auto [below, y] = reflected(l, x);
  const Value one = like(l, x, 1);
  Value steps = l.unary("Reciprocal", y);
  for (int i = 1; i < kShift; ++i)
    steps = l.add(steps, l.unary("Reciprocal", l.add(y, like(l, x, i))));
  const Value z = l.add(y, like(l, x, kShift));
  const Value w = l.unary("Reciprocal", z);
  constexpr std::array kSeries{0.0, 1.0 / 12, -1.0 / 120, 1.0 / 252};
  const Value tail = l.add(l.mul(w, like(l, x, 0.5)), polynomial(l, l.mul(w, w), kSeries));
  const Value right = l.sub(l.sub(l.unary("Log", z), tail), steps);
  const Value turns = half_turns(l, x);
  const Value mirror = l.div(l.mul(l.unary("Cos", turns), like(l, x, kPi)), l.unary("Sin", turns));
  Value result = l.where(below, l.sub(right, mirror), right);
  result = l.where(whole_and(l, x, "Less"), like(l, x, kNan), result);
  const Value none = l.compare("Equal", x, like(l, x, 0));
  const Value pole = l.unary("Neg", l.div(one, l.where(none, x, one)));  // the sign of the zero
  return done(l, l.where(none, pole, result));
}

Value log_gamma(Lower& l, Value x) {
  const auto [below, y] = reflected(l, x);
  Value steps = y;
  for (int i = 1; i < kShift; ++i) steps = l.mul(steps, l.add(y, like(l, x, i)));
  const Value z = l.add(y, like(l, x, kShift));
  const Value w = l.unary("Reciprocal", z);
  constexpr std::array kSeries{1.0 / 12, -1.0 / 360, 1.0 / 1260};
  const Value tail =
      l.add(l.mul(w, polynomial(l, l.mul(w, w), kSeries)), like(l, x, 0.5 * std::log(2 * kPi)));
  const Value main = l.sub(l.mul(l.sub(z, like(l, x, 0.5)), l.unary("Log", z)), z);
  const Value right = l.sub(l.add(main, tail), l.unary("Log", steps));
  const Value mirror =
      l.unary("Log", l.div(like(l, x, kPi), l.unary("Abs", l.unary("Sin", half_turns(l, x)))));
  const Value result = l.where(below, l.sub(mirror, right), right);
  const Value pole = l.binary("Or", whole_and(l, x, "LessOrEqual"), is_infinite(l, x));
  return l.where(pole, like(l, x, kInfinity), result);
}

Values lgamma(Lower& l) { return done(l, log_gamma(l, operand(l))); }

Values mvlgamma(Lower& l) {
  const Value x = operand(l);
  const std::int64_t p = l.call().number("p");
  Value sum = like(l, x, static_cast<double>(p * (p - 1)) / 4 * std::log(kPi));
  for (std::int64_t i = 0; i < p; ++i)
    sum = l.add(log_gamma(l, i == 0 ? x : l.sub(x, like(l, x, static_cast<double>(i) / 2))), sum);
  return done(l, sum);
}

Values erfc(Lower& l) {
  const Value x = operand(l);
  const Value size = l.unary("Abs", x);
  const Value right = l.mul(scaled_erfc(l, size), l.unary("Exp", l.unary("Neg", l.mul(x, x))));
  const Value left = l.sub(like(l, x, 2), right);
  return done(l, l.where(l.compare("Less", x, like(l, x, 0)), left, right));
}

Values erfcx(Lower& l) {
  const Value x = operand(l);
  const Value right = scaled_erfc(l, l.unary("Abs", x));
  const Value left = l.sub(l.mul(like(l, x, 2), l.unary("Exp", l.mul(x, x))), right);
  return done(l, l.where(l.compare("Less", x, like(l, x, 0)), left, right));
}

Values erfinv(Lower& l) {
  const Value x = operand(l);
  const Value one = like(l, x, 1);
  return done(l, erfinv_of(l, x, l.mul(l.sub(one, x), l.add(one, x))));
}

Values ndtri(Lower& l) {
  const Value p = operand(l);
  const Value x = l.sub(l.mul(p, like(l, p, 2)), like(l, p, 1));
  const Value square = l.mul(l.mul(p, like(l, p, 4)), l.sub(like(l, p, 1), p));
  return done(l, l.mul(erfinv_of(l, x, square), like(l, p, std::numbers::sqrt2)));
}

Values log_ndtr(Lower& l) {
  const Value x = operand(l);
  const Value t = l.mul(l.unary("Abs", x), like(l, x, 1 / std::numbers::sqrt2));
  const Value tail = l.mul(scaled_erfc(l, t), like(l, x, 0.5));
  const Value square = l.mul(t, t);
  const Value left = l.sub(l.unary("Log", tail), square);
  const Value rest = l.mul(tail, l.unary("Exp", l.unary("Neg", square)));
  const Value right = l.unary("Log", l.sub(like(l, x, 1), rest));
  return done(l, l.where(l.compare("Less", x, like(l, x, 0)), left, right));
}

Value bessel_i0_of(Lower& l, Value x) { return bessel(l, x, kI0, false); }
Values bessel_i0(Lower& l) { return done(l, bessel(l, operand(l), kI0, false)); }
Values bessel_i0e(Lower& l) { return done(l, bessel(l, operand(l), kI0, true)); }
Values bessel_i1(Lower& l) { return done(l, bessel(l, operand(l), kI1, false)); }
Values bessel_i1e(Lower& l) { return done(l, bessel(l, operand(l), kI1, true)); }

}  // namespace modelport::ops::onnx
