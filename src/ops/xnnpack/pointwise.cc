#include "ops/xnnpack/pointwise.h"

#include <cmath>
#include <numbers>

#include "base/not_finite.h"

namespace modelport::ops::xnnpack {
namespace {

constexpr std::string_view kNotReal = "an operand is not f32 with one to six axes, nor a number";

/// The operand of a row with one, or kNoValue.
Value self_of(Lower& l) { return l.takes_result() ? l.real("self") : kNoValue; }

/// A number that the program knows now.
std::optional<double> known_number(Lower& l, std::string_view name) {
  const ir::Arg& arg = l.call().arg(name);
  if (const double* number = arg.get<double>()) return *number;
  const Int* number = arg.get<Int>();
  if (number == nullptr || !number->constant()) return std::nullopt;
  return static_cast<double>(*number->constant());
}

Values sum(Lower& l, std::string_view node, bool is_reversed) {
  const Value self = self_of(l);
  Value other = l.real("other");
  const std::optional<double> alpha = known_number(l, "alpha");
  if (self == kNoValue || other == kNoValue || !alpha) return l.leave(kNotReal);
  if (is_reversed) {
    const Value scaled = *alpha == 1 ? self : l.binary("Multiply", self, l.real(*alpha));
    return {l.binary(node, other, scaled)};
  }
  if (*alpha != 1) other = l.binary("Multiply", other, l.real(*alpha));
  return {l.binary(node, self, other)};
}

Values limited(Lower& l, double least, double most) {
  const Value self = self_of(l);
  if (self == kNoValue) return l.leave(kNotReal);
  // An operand that is not a number stays one in torch, and becomes the limit here; nothing that
  // is right depends on it.
  return {l.clamped(self, least, most)};
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Value gelu_by_tanh(Lower& l, Value x) {
  const Value cube = l.binary("Multiply", x, l.unary("Square", x));
  const Value inner = l.binary("Add", x, l.binary("Multiply", cube, l.real(0.044715)));
  const double factor = std::sqrt(2 / std::numbers::pi);
  const Value curve = l.unary("Tanh", l.binary("Multiply", inner, l.real(factor)));
  const Value half = l.binary("Multiply", x, l.real(0.5));
  return l.binary("Multiply", half, l.binary("Add", curve, l.real(1)));
}

}  // namespace

Values add(Lower& l) { return sum(l, "Add", false); }
Values sub(Lower& l) { return sum(l, "Subtract", false); }
Values rsub(Lower& l) { return sum(l, "Subtract", true); }

Values clamp(Lower& l) {
  const bool has_min = schema_of(l.call().op()).find("min") != nullptr && l.has("min");
  const bool has_max = schema_of(l.call().op()).find("max") != nullptr && l.has("max");
  const std::optional<double> least = has_min ? known_number(l, "min") : -kInfinity;
  const std::optional<double> most = has_max ? known_number(l, "max") : kInfinity;
  if (!least || !most) return l.leave("a limit is computed");
  if (!(*least < *most)) return l.leave("the limits leave one value");
  return limited(l, *least, *most);
}

Values relu(Lower& l) { return limited(l, 0, kInfinity); }
Values relu6(Lower& l) { return limited(l, 0, 6); }

Values hardtanh(Lower& l) {
  const std::optional<double> least = known_number(l, "min_val");
  const std::optional<double> most = known_number(l, "max_val");
  if (!least || !most || !(*least < *most)) return l.leave("limits that are no range");
  return limited(l, *least, *most);
}

Values elu(Lower& l) {
  const Value x = self_of(l);
  const std::optional<double> alpha = known_number(l, "alpha");
  if (x == kNoValue || !alpha || *alpha <= 0) return l.leave(kNotReal);
  if (known_number(l, "scale") != 1 || known_number(l, "input_scale") != 1)
    return l.leave("factors beside alpha");
  return {l.unary("ELU", x, {{"alpha", {*alpha}}})};
}

Values gelu(Lower& l) {
  const Value x = self_of(l);
  if (x == kNoValue) return l.leave(kNotReal);
  return {l.call().string("approximate") == "tanh" ? gelu_by_tanh(l, x) : l.unary("Gelu", x)};
}

Values hardsigmoid(Lower& l) {
  const Value x = self_of(l);
  if (x == kNoValue) return l.leave(kNotReal);
  const Value sixth = l.binary("Multiply", x, l.real(1.0 / 6));
  return {l.clamped(l.binary("Add", sixth, l.real(0.5)), 0, 1)};
}

Values leaky_relu(Lower& l) {
  const Value x = self_of(l);
  const std::optional<double> slope = known_number(l, "negative_slope");
  if (x == kNoValue || !slope) return l.leave(kNotReal);
  return {l.unary("LeakyReLU", x, {{"negative_slope", {*slope}}})};
}

Values power(Lower& l) {
  const Value x = self_of(l);
  const std::optional<double> exponent = known_number(l, "exponent");
  if (x == kNoValue || !exponent) return l.leave(kNotReal);
  if (*exponent == 2) return {l.unary("Square", x)};
  if (*exponent == 3) return {l.binary("Multiply", x, l.unary("Square", x))};
  if (*exponent == 4) return {l.unary("Square", l.unary("Square", x))};
  if (*exponent == 0.5) return {l.unary("SquareRoot", x)};
  if (*exponent == -0.5) return {l.unary("ReciprocalSquareRoot", x)};
  if (*exponent == -1) return {l.binary("Div", l.real(1), x)};
  return l.leave("an exponent other than 2, 3, 4, 1/2, -1/2 and -1");
}

Values reciprocal(Lower& l) {
  const Value x = self_of(l);
  if (x == kNoValue) return l.leave(kNotReal);
  return {l.binary("Div", l.real(1), x)};
}

Values silu(Lower& l) {
  const Value x = self_of(l);
  if (x == kNoValue) return l.leave(kNotReal);
  return {l.binary("Multiply", x, l.unary("Sigmoid", x))};
}

}  // namespace modelport::ops::xnnpack
