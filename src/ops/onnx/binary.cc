// Two operands: arithmetic, divisions and powers as torch rounds them, and choices.
#include "ops/onnx/binary.h"

#include <cmath>
#include <numbers>

#include "ops/decompositions/pointwise.h"
#include "ops/onnx/complex.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Dtype working(Lower& l) { return working_dtype(l.result().dtype); }

struct Pair {
  Value a, b;
};
/// As torch reads it: a number that a small integer type does not hold wraps around in that type,
/// whatever type the kernel computes in.
Value wrapped_in(Lower& l, std::string_view name, Dtype common) {
  return l.cast(l.in(name, common), working_dtype(common));
}

Pair operands(Lower& l, std::string_view first = "self", std::string_view second = "other") {
  const Dtype common = promote(l.call(), {first, second});
  if (is_integral(common) && is_integral(l.result().dtype))
    return {wrapped_in(l, first, common), wrapped_in(l, second, common)};
  return {l.in(first, working(l)), l.in(second, working(l))};
}

Pair factors(Lower& l) { return {l.in("tensor1", working(l)), l.in("tensor2", working(l))}; }

bool is_one(const ir::Arg& arg) {
  if (const double* real = arg.get<double>()) return *real == 1;
  if (const Int* whole = arg.get<Int>()) return *whole == Int(1);
  const bool* truth = arg.get<bool>();
  return truth != nullptr && *truth;
}

/// The factor in front of an operand: alpha, value.
Value times(Lower& l, Value x, std::string_view factor) {
  const ir::Arg& arg = l.call().arg(factor);
  if (is_one(arg)) return x;
  if (is_complex(l.dtype(x)))
    return complex_scaled(l, "Mul", x, l.number_of(arg, to_real(l.dtype(x))));
  return l.mul(x, l.number_of(arg, l.dtype(x)));
}

Value sum(Lower& l, std::string_view op, Value a, Value b) {
  return is_complex(l.dtype(a)) ? on_pairs(l, op, a, b) : l.binary(op, a, b);
}

void refuse_complex(Lower& l) {
  if (is_complex(l.result().dtype)) l.refuse("no rule for complex numbers");
}

/// A product or quotient of complex numbers; a real operand stays real.
Value complex_operation(Lower& l, bool product) {
  const Dtype own = l.result().dtype;
  const Value a = l.in("self"), b = l.in("other");
  if (!is_complex(l.dtype(b)))
    return complex_scaled(l, product ? "Mul" : "Div", l.cast(a, own), l.cast(b, to_real(own)));
  if (product && !is_complex(l.dtype(a)))
    return complex_scaled(l, "Mul", l.cast(b, own), l.cast(a, to_real(own)));
  const Value left = l.cast(a, own), right = l.cast(b, own);
  return product ? complex_product(l, left, right) : complex_quotient(l, left, right);
}

std::optional<double> plain_number(const ir::Arg& arg) {
  if (const double* real = arg.get<double>()) return *real;
  const Int* whole = arg.get<Int>();
  if (whole == nullptr || !whole->constant()) return std::nullopt;
  return static_cast<double>(*whole->constant());
}

Values extreme(Lower& l, bool largest) {
  refuse_complex(l);
  if (l.result().dtype == Dtype::boolean)
    return {l.binary(largest ? "Or" : "And", l.in("self"), l.in("other"))};
  const auto [a, b] = operands(l);
  return done(l, l.binary(largest ? "Max" : "Min", a, b));
}

/// The other operand where one is NaN.
Values number_extreme(Lower& l, bool largest) {
  if (is_whole(l.result().dtype)) return extreme(l, largest);
  const auto [a, b] = operands(l);
  const Value both = l.binary(largest ? "Max" : "Min", a, b);
  return done(l, l.where(is_nan(l, a), b, l.where(is_nan(l, b), a, both)));
}

/// log(base^a + base^b), where the larger one is taken out first.
Value log_sum(Lower& l, Value a, Value b, double log_base) {
  const Value distance = l.unary("Neg", l.unary("Abs", l.sub(a, b)));
  const Value power = log_base == 1 ? distance : l.mul(distance, like(l, a, log_base));
  const Value rest = log1p(l, l.unary("Exp", power));
  const Value scaled = log_base == 1 ? rest : l.mul(rest, like(l, a, 1 / log_base));
  // Two infinities have no distance.
  return l.where(l.compare("Equal", a, b), l.add(a, like(l, a, std::numbers::ln2 / log_base)),
                 l.add(l.binary("Max", a, b), scaled));
}

/// x * y, 0 where x is 0 unless y is NaN.
Values product_with_zero(Lower& l, Value x, Value y, Value argument) {
  const Value none =
      l.binary("And", l.compare("Equal", x, like(l, x, 0)), l.logical_not(is_nan(l, argument)));
  return done(l, l.where(none, like(l, x, 0), l.mul(x, y)));
}

}  // namespace

Values add(Lower& l) {
  if (l.result().dtype == Dtype::boolean)
    return {l.binary("Or", l.in("self", Dtype::boolean), l.in("other", Dtype::boolean))};
  const auto [a, b] = operands(l);
  return done(l, sum(l, "Add", a, times(l, b, "alpha")));
}

Values sub(Lower& l) {
  const auto [a, b] = operands(l);
  return done(l, sum(l, "Sub", a, times(l, b, "alpha")));
}

Values rsub(Lower& l) {
  const auto [a, b] = operands(l);
  return done(l, sum(l, "Sub", b, times(l, a, "alpha")));
}

Values mul(Lower& l) {
  const Dtype own = l.result().dtype;
  if (is_complex(own)) return {complex_operation(l, true)};
  if (own == Dtype::boolean)
    return {l.binary("And", l.in("self", Dtype::boolean), l.in("other", Dtype::boolean))};
  const auto [a, b] = operands(l);
  return done(l, l.mul(a, b));
}

Values div(Lower& l) {
  if (is_complex(l.result().dtype)) return {complex_operation(l, false)};
  const auto [a, b] = operands(l);
  return done(l, l.div(a, b));
}

namespace {

/// Eager mode only gets past it where the tensor is empty, onnxruntime not even to load the file.
void refuse_whole_by_zero(Lower& l) {
  if (is_whole(l.result().dtype) && plain_number(l.call().arg("other")) == 0.0)
    l.refuse("integers are divided by the number zero");
}

}  // namespace

Values div_mode(Lower& l) {
  if (!l.has("rounding_mode")) return div(l);
  refuse_complex(l);
  if (l.call().string("rounding_mode") == "floor") return floor_divide(l);
  refuse_whole_by_zero(l);
  const auto [a, b] = operands(l);
  return done(l, truncated_quotient(l, a, b));
}

Values floor_divide(Lower& l) {
  refuse_whole_by_zero(l);
  const auto [a, b] = operands(l);
  const auto divisor = plain_number(l.call().arg("other"));
  int exponent = 0;
  // A power of two divides without rounding.
  if (divisor && !is_whole(l.dtype(a)) && std::abs(std::frexp(*divisor, &exponent)) == 0.5)
    return done(l, l.unary("Floor", l.div(a, b)));
  return done(l, floor_quotient(l, a, b));
}

Values fmod(Lower& l) {
  refuse_whole_by_zero(l);
  const auto [a, b] = operands(l);
  return done(l, truncated_remainder(l, a, b));
}

Values remainder(Lower& l) {
  refuse_whole_by_zero(l);
  const auto [a, b] = operands(l);
  return done(l, floor_remainder(l, a, b));
}

Values maximum(Lower& l) { return extreme(l, true); }
Values minimum(Lower& l) { return extreme(l, false); }
Values fmax(Lower& l) { return number_extreme(l, true); }
Values fmin(Lower& l) { return number_extreme(l, false); }

Values pow(Lower& l) {
  const Dtype own = l.result().dtype;
  const auto exponent = plain_number(l.call().arg("exponent"));
  const bool small_whole =
      exponent && *exponent >= 1 && *exponent <= 4 && *exponent == std::floor(*exponent);
  if (is_complex(own)) {
    if (exponent != 2) l.refuse("powers of complex numbers other than 2");
    return {complex_product(l, l.in("self", own), l.in("self", own))};
  }
  if (is_integral(own)) return {parts::whole_power(l)};
  const Value x = l.in("self", working(l));
  // Products are faster.
  if (small_whole) return done(l, power_of(l, x, static_cast<std::int64_t>(*exponent)));
  if (!is_whole(own) && exponent == 0.5) return done(l, l.unary("Sqrt", x));
  if (!is_whole(own) && exponent == -1) return done(l, l.unary("Reciprocal", x));
  if (!is_whole(own) && exponent == -0.5) return done(l, l.unary("Reciprocal", l.unary("Sqrt", x)));
  return done(l, l.binary("Pow", x, l.in("exponent", working(l))));
}

Values atan2(Lower& l) {
  const auto [y, x] = operands(l);
  return done(l, arc_tangent(l, y, x));
}

Values copysign(Lower& l) {
  const auto [a, b] = operands(l);
  const Value size = l.unary("Abs", a);
  return done(l, l.where(sign_bit(l, b), l.unary("Neg", size), size));
}

Values heaviside(Lower& l) {
  const auto [x, values] = operands(l, "self", "values");
  const Value zero = like(l, x, 0);
  const Value step = l.cast(l.compare("Greater", x, zero), l.dtype(x));
  return done(l, l.where(l.compare("Equal", x, zero), values, step));
}

Values hypot(Lower& l) {
  const auto [a, b] = operands(l);
  return done(l, l.unary("Sqrt", l.add(l.mul(a, a), l.mul(b, b))));
}

Values ldexp(Lower& l) {
  const auto [a, b] = operands(l);
  return done(l, l.mul(a, l.binary("Pow", like(l, a, 2), b)));
}

Values logaddexp(Lower& l) {
  refuse_complex(l);
  const auto [a, b] = operands(l);
  return done(l, log_sum(l, a, b, 1));
}

Values logaddexp2(Lower& l) {
  const auto [a, b] = operands(l);
  return done(l, log_sum(l, a, b, std::numbers::ln2));
}

Values xlogy(Lower& l) {
  const auto [x, y] = operands(l);
  return product_with_zero(l, x, l.unary("Log", y), y);
}

Values xlog1py(Lower& l) {
  const auto [x, y] = operands(l);
  return product_with_zero(l, x, log1p(l, y), y);
}

// --- three operands
// -------------------------------------------------------------------------------

Values addcdiv(Lower& l) {
  refuse_complex(l);
  const auto [a, b] = factors(l);
  return done(l, l.add(l.in("self", working(l)), times(l, l.div(a, b), "value")));
}

Values addcmul(Lower& l) {
  refuse_complex(l);
  const auto [a, b] = factors(l);
  return done(l, l.add(l.in("self", working(l)), times(l, l.mul(a, b), "value")));
}

// Also clamp_min and clamp_max, which have one of the limits.
Values clamp(Lower& l) {
  const Schema& schema = schema_of(l.call().op());
  const Dtype own = l.result().dtype;
  const auto limit = [&](std::string_view name) {
    if (schema.find(name) == nullptr) return kNoValue;
    return is_integral(own) ? wrapped_in(l, name, own) : l.in(name, working(l));
  };
  const Value low = limit("min"), high = limit("max");
  Value x = l.in("self", working(l));
  // Not for one limit, where Clip takes the greatest finite number for the other one, and not for
  // tensors, where it takes NaN for no limit.
  const auto plain = [&](std::string_view name, Value v) {
    return v != kNoValue && !l.call().is_tensor(name);
  };
  if (plain("min", low) && plain("max", high))
    return done(l, l.emit("Clip", {x, low, high}, {}, l.type(x)));
  if (low != kNoValue) x = l.binary("Max", x, low);
  if (high != kNoValue) x = l.binary("Min", x, high);
  return done(l, x);
}

Values lerp(Lower& l) {
  refuse_complex(l);
  const auto [a, b] = operands(l, "self", "end");
  const Value away = l.sub(b, a);
  const auto weight = plain_number(l.call().arg("weight"));
  // As torch has it: from the nearer end.
  if (weight && *weight >= 0.5) return done(l, l.sub(b, l.mul(away, like(l, b, 1 - *weight))));
  return done(l, l.add(a, l.mul(away, l.in("weight", working(l)))));
}

Values where(Lower& l) {
  const Dtype own = l.result().dtype;
  return {l.where(l.in("condition", Dtype::boolean), l.in("self", own), l.in("other", own))};
}

}  // namespace modelport::ops::onnx
