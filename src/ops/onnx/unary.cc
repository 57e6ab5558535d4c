// One operand: the operator of ONNX where there is one, else a few of them.
#include "ops/onnx/unary.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/not_finite.h"
#include "ops/onnx/complex.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

/// The operand in the type that the result is computed in.
Value operand(Lower& l) { return l.in("self", working_dtype(l.result().dtype)); }
Values scaled(Lower& l, double factor) {
  const Value x = operand(l);
  return done(l, l.mul(x, like(l, x, factor)));
}
double largest_finite(Dtype dtype) {
  if (dtype == Dtype::f64) return std::numeric_limits<double>::max();
  if (dtype == Dtype::f16) return 65504;
  return dtype == Dtype::bf16 ? 0x1.FEp127 : std::numeric_limits<float>::max();
}
bool complex_self(Lower& l) { return is_complex(l.dtype(l.in("self"))); }
void refuse_complex(Lower& l) {
  if (complex_self(l)) l.refuse("no rule for complex numbers");
}

}  // namespace

Values abs(Lower& l) {
  const Value x = l.in("self");
  if (is_complex(l.dtype(x))) return {complex_magnitude(l, x)};
  return {l.unary("Abs", x)};
}

Values bitwise_not(Lower& l) {
  const Value x = l.in("self");
  if (l.dtype(x) == Dtype::boolean) return {l.logical_not(x)};
  if (l.opset() >= 18) return {l.unary("BitwiseNot", x)};
  return {l.sub(like(l, x, -1), x)};
}

Values rounded(Lower& l) {
  const Value x = l.in("self");
  if (is_whole(l.dtype(x))) return {x};
  const std::string_view name = l.call().op().name;
  if (name == "aten.trunc") return done(l, truncated(l, operand(l)));
  return {l.unary(name == "aten.ceil" ? "Ceil" : name == "aten.floor" ? "Floor" : "Round", x)};
}

Values round_decimals(Lower& l) {
  const Value x = operand(l);
  const std::int64_t decimals = l.call().number("decimals");
  if (is_whole(l.dtype(x))) return {x};
  if (decimals == 0) return {l.unary("Round", x)};
  const Value unit = like(l, x, std::pow(10.0, std::abs(static_cast<double>(decimals))));
  const bool fine = decimals > 0;
  const Value steps = l.unary("Round", fine ? l.mul(x, unit) : l.div(x, unit));
  return done(l, fine ? l.div(steps, unit) : l.mul(steps, unit));
}

Values deg2rad(Lower& l) { return scaled(l, std::numbers::pi / 180); }
Values rad2deg(Lower& l) { return scaled(l, 180 / std::numbers::pi); }

Values exp(Lower& l) {
  if (complex_self(l)) return {complex_exp(l, l.in("self"))};
  return done(l, l.unary("Exp", operand(l)));
}

Values exp2(Lower& l) {
  refuse_complex(l);
  const Value x = operand(l);
  return done(l, l.binary("Pow", like(l, x, 2), x));
}

Values expm1(Lower& l) {
  refuse_complex(l);
  const Value x = operand(l);
  return done(l, l.sub(l.unary("Exp", x), like(l, x, 1)));
}

Values frac(Lower& l) {
  const Value x = operand(l);
  return done(l, truncated_remainder(l, x, like(l, x, 1)));
}

Values frexp(Lower& l) {
  const Value x = operand(l);
  const Value size = l.unary("Abs", x);
  const Value none = l.compare("Equal", x, like(l, x, 0));
  const Value one = like(l, x, 1), two = like(l, x, 2);
  const Value log2 =
      l.mul(l.unary("Log", l.where(none, one, size)), like(l, x, std::numbers::log2e));
  const Value guess = l.add(l.unary("Floor", log2), one);
  const Value rough = l.div(size, l.binary("Pow", two, guess));  // off by two where the log rounds
  const Value over = l.cast(l.compare("GreaterOrEqual", rough, one), l.dtype(x));
  const Value under = l.cast(l.compare("Less", rough, like(l, x, 0.5)), l.dtype(x));
  const Value exponent = l.where(none, like(l, x, 0), l.sub(l.add(guess, over), under));
  return {l.cast(l.div(x, l.binary("Pow", two, exponent)), l.result().dtype),
          l.cast(exponent, Dtype::i32)};
}

Values isfinite(Lower& l) {
  refuse_complex(l);
  return {is_finite(l, l.in("self"))};
}
Values isinf(Lower& l) {
  refuse_complex(l);
  return {is_infinite(l, l.in("self"))};
}
Values isnan(Lower& l) {
  refuse_complex(l);
  return {is_nan(l, l.in("self"))};
}
Values isneginf(Lower& l) {
  const Value x = l.in("self");
  if (is_whole(l.dtype(x))) return {is_infinite(l, x)};
  return {l.compare("Equal", x, like(l, x, -kInfinity))};
}
Values isposinf(Lower& l) {
  const Value x = l.in("self");
  if (is_whole(l.dtype(x))) return {is_infinite(l, x)};
  return {l.compare("Equal", x, like(l, x, kInfinity))};
}

Values log(Lower& l) {
  if (complex_self(l)) return {complex_log(l, l.in("self"))};
  return done(l, l.unary("Log", operand(l)));
}
Values log10(Lower& l) {
  refuse_complex(l);
  const Value x = l.unary("Log", operand(l));
  return done(l, l.mul(x, like(l, x, std::numbers::log10e)));
}
Values log1p_cell(Lower& l) {
  refuse_complex(l);
  return done(l, log1p(l, operand(l)));
}
Values log2(Lower& l) {
  refuse_complex(l);
  const Value x = l.unary("Log", operand(l));
  return done(l, l.mul(x, like(l, x, std::numbers::log2e)));
}

Values logical_not(Lower& l) {
  refuse_complex(l);
  return {l.logical_not(l.in("self", Dtype::boolean))};
}

Values logit(Lower& l) {
  Value x = operand(l);
  if (l.has("eps")) {
    const double eps = l.real_number("eps");
    x = l.emit("Clip", {x, like(l, x, eps), like(l, x, 1 - eps)}, {}, l.type(x));
  }
  return done(l, l.unary("Log", l.div(x, l.sub(like(l, x, 1), x))));
}

Values nan_to_num(Lower& l) {
  refuse_complex(l);
  const Value self = l.in("self");
  if (is_whole(l.dtype(self))) return {self};
  const Dtype own = l.dtype(self);
  const Dtype work = working_dtype(own);
  const Value x = l.cast(self, work);
  const Value nan = l.has("nan") ? l.in("nan", work) : l.number(0.0, work);
  Value numbers = l.where(is_nan(l, x), nan, x);
  const Value top = l.number(largest_finite(own), work);
  const Value bottom = l.number(-largest_finite(own), work);
  if (!l.has("posinf") && !l.has("neginf"))
    return done(l, l.emit("Clip", {numbers, bottom, top}, {}, l.type(x)));
  const Value above = l.has("posinf") ? l.in("posinf", work) : top;
  const Value below = l.has("neginf") ? l.in("neginf", work) : bottom;
  numbers = l.where(l.compare("Equal", x, like(l, x, kInfinity)), above, numbers);
  return done(l, l.where(l.compare("Equal", x, like(l, x, -kInfinity)), below, numbers));
}

Values neg(Lower& l) {
  const Value x = l.in("self");
  if (is_complex(l.dtype(x))) return {l.from_pairs(l.unary("Neg", l.as_pairs(x)))};
  return {l.unary("Neg", x)};
}

Values reciprocal(Lower& l) {
  if (complex_self(l)) {
    const Value x = l.in("self");
    return {complex_quotient(l, l.number(1.0, l.dtype(x)), x)};
  }
  return done(l, l.unary("Reciprocal", operand(l)));
}

Values rsqrt(Lower& l) {
  refuse_complex(l);
  return done(l, l.unary("Reciprocal", l.unary("Sqrt", operand(l))));
}

Values sign(Lower& l) {
  const Value x = l.in("self");
  if (l.dtype(x) == Dtype::boolean) return {x};
  if (is_complex(l.dtype(x))) return {complex_sign(l, x)};
  return {l.unary("Sign", x)};
}

Values signbit(Lower& l) {
  return {sign_bit(l, l.in("self", working_dtype(l.dtype(l.in("self")))))};
}

Values sinc(Lower& l) {
  refuse_complex(l);
  const Value x = operand(l);
  const Value none = l.compare("Equal", x, like(l, x, 0));
  const Value angle = l.mul(l.where(none, like(l, x, 1), x), like(l, x, std::numbers::pi));
  return done(l, l.where(none, like(l, x, 1), l.div(l.unary("Sin", angle), angle)));
}

Values sqrt(Lower& l) {
  if (complex_self(l)) return {complex_sqrt(l, l.in("self"))};
  return done(l, l.unary("Sqrt", operand(l)));
}

Values square(Lower& l) {
  if (complex_self(l)) return {complex_product(l, l.in("self"), l.in("self"))};
  const Value x = operand(l);
  return done(l, l.mul(x, x));
}

// -x log x, 0 at 0, -inf below.
Values entropy_term(Lower& l) {
  const Value x = operand(l);
  const Value zero = like(l, x, 0);
  const Value inside = l.unary("Neg", l.mul(x, l.unary("Log", x)));
  const Value below = l.where(l.compare("Less", x, zero), like(l, x, -kInfinity), inside);
  return done(l, l.where(l.compare("Equal", x, zero), zero, below));
}

}  // namespace modelport::ops::onnx
