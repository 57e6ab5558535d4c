// The bits of a tensor under another type. Before opset 26 ONNX cannot reinterpret bits, so they
// are computed: as numbers from 0 to 2**width - 1, split or joined where the width changes.
#include <limits>

#include "ops/onnx/pieces.h"
#include "ops/onnx/shape.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

struct FloatFormat {
  std::int64_t mantissa_bits;
  std::int64_t least_exponent;  // of a normal number
  std::int64_t width;
  std::int64_t infinity() const {
    return (std::int64_t{1} << (width - 1)) - (std::int64_t{1} << mantissa_bits);
  }
};

std::optional<FloatFormat> format_of(Dtype dtype) {
  if (dtype == Dtype::f32) return FloatFormat{23, -126, 32};
  if (dtype == Dtype::f16) return FloatFormat{10, -14, 16};
  if (dtype == Dtype::bf16) return FloatFormat{7, -126, 16};
  return std::nullopt;
}

Value whole(Lower& l, std::int64_t value) { return l.number(value, Dtype::i64); }
Value real(Lower& l, double value) { return l.number(value, Dtype::f64); }

/// Doubles hold every number of these formats, and all steps on the way, exactly.
Value bits_of_float(Lower& l, Value x, const FloatFormat& format) {
  x = l.cast(x, Dtype::f64);
  const Value magnitude = l.unary("Abs", x);
  const double unit = static_cast<double>(std::int64_t{1} << format.mantissa_bits);
  const Value bounded = l.binary("Max", l.binary("Min", magnitude, real(l, 4e38)), real(l, 1e-60));
  // The logarithm may be off by one in its whole part.
  Value exponent = l.unary("Floor", l.mul(l.unary("Log", bounded), real(l, 1.4426950408889634)));
  const Value guess = l.binary("Pow", real(l, 2), exponent);
  const Value quotient = l.div(bounded, guess);
  exponent = l.add(exponent, l.cast(l.compare("GreaterOrEqual", quotient, real(l, 2)), Dtype::f64));
  exponent = l.sub(exponent, l.cast(l.compare("Less", quotient, real(l, 1)), Dtype::f64));
  const Value least = real(l, static_cast<double>(format.least_exponent));
  exponent = l.binary("Max", exponent, least);
  const Value mantissa = l.div(magnitude, l.binary("Pow", real(l, 2), exponent));
  const Value number =
      l.cast(l.mul(l.add(l.sub(exponent, least), mantissa), real(l, unit)), Dtype::i64);
  const Value infinite = l.emit("IsInf", {x}, {}, {Dtype::boolean, l.shape(x)});
  const Value nan = l.emit("IsNaN", {x}, {}, {Dtype::boolean, l.shape(x)});
  const std::int64_t quiet = format.infinity() + (std::int64_t{1} << (format.mantissa_bits - 1));
  const Value finite = l.where(infinite, whole(l, format.infinity()), number);
  const Value positive = l.where(nan, whole(l, quiet), finite);
  // 1 / -0.0 is negative.
  const Value negative = l.emit(
      "Or", {l.compare("Less", x, real(l, 0)), l.compare("Less", l.div(real(l, 1), x), real(l, 0))},
      {}, {Dtype::boolean, l.shape(x)});
  const Value sign =
      l.where(negative, whole(l, std::int64_t{1} << (format.width - 1)), whole(l, 0));
  return l.add(positive, sign);
}

Value float_of_bits(Lower& l, Value bits, const FloatFormat& format) {
  const Value top = whole(l, std::int64_t{1} << (format.width - 1));
  const Value unit = whole(l, std::int64_t{1} << format.mantissa_bits);
  const Value magnitude = l.binary("Mod", bits, top);
  const Value mantissa = l.binary("Mod", magnitude, unit);
  const Value exponent = l.div(magnitude, unit);
  const Value normal = l.cast(l.compare("Greater", exponent, whole(l, 0)), Dtype::i64);
  const Value digits = l.cast(l.add(mantissa, l.mul(normal, unit)), Dtype::f64);
  const Value place = l.add(l.binary("Max", exponent, whole(l, 1)),
                            whole(l, format.least_exponent - 1 - format.mantissa_bits));
  const Value number = l.mul(digits, l.binary("Pow", real(l, 2), l.cast(place, Dtype::f64)));
  const Value infinity = whole(l, format.infinity());
  const Value infinite = l.where(l.compare("Equal", magnitude, infinity),
                                 real(l, std::numeric_limits<double>::infinity()), number);
  const Value positive = l.where(l.compare("Greater", magnitude, infinity),
                                 real(l, std::numeric_limits<double>::quiet_NaN()), infinite);
  return l.where(l.compare("GreaterOrEqual", bits, top), l.unary("Neg", positive), positive);
}

/// Numbers from 0 on; of 8 bytes, the number itself, sign included.
Value bits_of(Lower& l, Value x) {
  const Dtype dtype = l.dtype(x);
  if (const auto format = format_of(dtype)) return bits_of_float(l, x, *format);
  if (is_floating(dtype)) l.refuse("the bits of this type cannot be read before opset 26");
  const Value number = l.cast(x, Dtype::i64);
  const bool has_sign = dtype == Dtype::i32 || dtype == Dtype::i16 || dtype == Dtype::i8;
  if (!has_sign) return number;
  return l.binary("Mod", number, whole(l, std::int64_t{1} << bit_count(dtype)));
}

Value of_bits(Lower& l, Value bits, Dtype dtype) {
  if (const auto format = format_of(dtype)) return l.cast(float_of_bits(l, bits, *format), dtype);
  if (is_floating(dtype)) l.refuse("numbers of this type cannot be made of bits before opset 26");
  return l.cast(bits, dtype);
}

Value split_bits(Lower& l, Value bits, std::int64_t parts, std::int64_t bytes) {
  std::vector<std::int64_t> weights;
  for (std::int64_t k = 0; k < parts; ++k) weights.push_back(std::int64_t{1} << (8 * bytes * k));
  const Value wide = l.unsqueeze(bits, {l.rank(bits)});
  const Value weight = l.ints(weights);
  const Value below = l.binary("Mod", wide, weight);
  return l.binary("Mod", l.div(l.sub(wide, below), weight),
                  whole(l, std::int64_t{1} << (8 * bytes)));
}

Value join_bits(Lower& l, Value bits, std::int64_t parts, std::int64_t bytes) {
  std::vector<std::int64_t> weights;
  for (std::int64_t k = 0; k < parts; ++k) weights.push_back(std::int64_t{1} << (8 * bytes * k));
  const std::int64_t last = l.rank(bits) - 1;
  const Value terms = l.mul(bits, l.ints(weights));
  Value sum = kNoValue;
  for (std::int64_t k = 0; k < parts; ++k) {
    const Value term = l.gather(terms, whole(l, k), last);
    sum = sum == kNoValue ? term : l.add(sum, term);
  }
  return sum;
}

/// c64 and f32, c128 and f64: the pairs are there.
Value complex_view(Lower& l, Value x, Dtype dtype) {
  if (is_complex(dtype)) {
    Shape pairs = l.result().shape;
    pairs.push_back(2);
    return l.from_pairs(l.reshape(x, pairs));
  }
  return l.reshape(l.as_pairs(x), l.result().shape);
}

}  // namespace

Values view_dtype(Lower& l) {
  const Value x = l.in("self");
  const Dtype had = l.dtype(x);
  const Dtype has = l.result().dtype;
  if (had == has) return {x};
  if (to_real(had) == to_real(has)) return {complex_view(l, x, has)};
  if (is_complex(had) || is_complex(has)) l.refuse("complex numbers under a type of another width");
  const auto from = static_cast<std::int64_t>(byte_size(had));
  const auto to = static_cast<std::int64_t>(byte_size(has));
  if (from == to && l.opset() >= 26) return {l.emit("BitCast", {x}, {{"to", {has}}})};
  if (from == to && is_integral(had) && is_integral(has)) return {l.cast(x, has)};
  Value bits = bits_of(l, x);
  if (from > to) bits = l.reshape(split_bits(l, bits, from / to, to), l.result().shape);
  if (from < to) {
    Shape parts = l.result().shape;
    parts.push_back(to / from);
    bits = join_bits(l, l.reshape(bits, parts), to / from, from);
  }
  return {of_bits(l, bits, has)};
}

}  // namespace modelport::ops::onnx
