// Random numbers. onnxruntime's CPU provider has no kernel for RandomUniformLike of opset 22 and
// later, but it has Dropout: its mask is a fair coin, and 24 coins make a float between 0 and 1.
#include "ops/onnx/random.h"

#include <cmath>
#include <numbers>

#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

constexpr int kLastRandomOpset = 21;

Shape shape_of_result(Lower& l) { return l.result().shape; }
/// The type that numbers are drawn in.
Dtype drawn_dtype(Dtype dtype) { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

Value drawn_like(Lower& l, std::string_view op, const Shape& shape, Dtype dtype) {
  const Value pattern = l.filled(l.number(0.0, dtype), shape);
  return l.emit(op, {pattern}, {{"dtype", {dtype}}}, {dtype, shape});
}

Value at_most(Lower& l, Value x, double limit) { return l.binary("Min", x, like(l, x, limit)); }

Value uniform_from_coins(Lower& l, const Shape& shape, Dtype dtype) {
  const std::int64_t count = significant_bits(dtype);
  Shape coins = shape;
  coins.push_back(count);
  std::vector<double> weights;
  for (std::int64_t i = 1; i <= count; ++i)
    weights.push_back(std::ldexp(1.0, static_cast<int>(-i)));
  const Value heads = random_mask(l, l.filled(l.number(1.0, Dtype::f32), coins), 0.5);
  return l.matmul(l.cast(heads, dtype), l.constant(dtype, {count}, weights));
}

/// 1 - u, which is never 0, for logarithms.
Value positive_uniform(Lower& l, const Shape& shape, Dtype dtype) {
  const Value u = random_uniform(l, shape, dtype);
  return l.sub(like(l, u, 1), u);
}

/// Half precision may not round it to 1.
Value result_uniform(Lower& l) {
  const Dtype dtype = l.result().dtype, drawn = drawn_dtype(dtype);
  const Value u = random_uniform(l, shape_of_result(l), drawn);
  const bool narrower = is_floating(dtype) && dtype != drawn;
  return narrower ? at_most(l, u, largest_below_one(dtype)) : u;
}
Value result_positive(Lower& l) {
  return positive_uniform(l, shape_of_result(l), drawn_dtype(l.result().dtype));
}

/// Whole numbers from low to high - 1.
Value integers(Lower& l, const Value& low, const Value& high) {
  const Value u = random_uniform(l, shape_of_result(l), Dtype::f64);
  const Value span = l.cast(l.sub(high, low), Dtype::f64);
  const Value steps = l.cast(l.unary("Floor", l.mul(u, span)), Dtype::i64);
  return l.add(steps, low);
}

/// -log(-log u): the greatest of log p + this is drawn with probability p. It is finite, so that
/// what has no probability is never drawn: u lies between the steps of a float, and never on 0
/// or 1.
Value gumbel(Lower& l, const Shape& shape) {
  const Value drawn = l.cast(random_uniform(l, shape, Dtype::f32), Dtype::f64);
  const double middle = 1 - std::ldexp(1.0, -25);
  const Value u = l.sub(like(l, drawn, middle), drawn);
  const Value inner = l.unary("Neg", l.unary("Log", u));
  return l.cast(l.unary("Neg", l.unary("Log", inner)), Dtype::f32);
}

}  // namespace

Value random_mask(Lower& l, Value x, double p) {
  const Value pattern = l.cast(x, Dtype::f32);
  // Its first result is not used: onnxruntime takes Dropout for nothing where the mask is not used.
  return l.emit_many("Dropout",
                     {pattern, l.number(p, Dtype::f32), l.number(std::int64_t{1}, Dtype::boolean)},
                     {}, {l.type(pattern), {Dtype::boolean, l.shape(x)}})[1];
}

Value random_uniform(Lower& l, const Shape& shape, Dtype dtype) {
  if (l.opset() > kLastRandomOpset) return uniform_from_coins(l, shape, dtype);
  // A runtime that was built with another library than GNU's may round up to 1.
  return at_most(l, drawn_like(l, "RandomUniformLike", shape, dtype), largest_below_one(dtype));
}

Value random_normal(Lower& l, const Shape& shape, Dtype dtype) {
  if (l.opset() <= kLastRandomOpset) return drawn_like(l, "RandomNormalLike", shape, dtype);
  // Box and Muller.
  const Value u = positive_uniform(l, shape, dtype);
  const Value radius = l.unary("Sqrt", l.mul(l.unary("Log", u), like(l, u, -2)));
  const Value turn = l.mul(random_uniform(l, shape, dtype), like(l, u, 2 * std::numbers::pi));
  return l.mul(radius, l.unary("Cos", turn));
}

Values rand(Lower& l) { return done(l, result_uniform(l)); }

Values randn(Lower& l) {
  return done(l, random_normal(l, shape_of_result(l), drawn_dtype(l.result().dtype)));
}

Values randint(Lower& l) {
  const bool from_zero = schema_of(l.call().op()).find("low") == nullptr;
  const Value low = from_zero ? l.number(std::int64_t{0}, Dtype::i64) : l.in("low");
  return done(l, integers(l, low, l.in("high")));
}

Values randperm(Lower& l) {
  const Int n = l.call().integer("n");
  return done(l, top(l, random_uniform(l, {n}, Dtype::f32), n, 0, true)[1]);
}

Values multinomial(Lower& l) {
  const Value weights = l.in("self", Dtype::f32);
  const Value scores = l.unary("Log", weights);
  const std::int64_t last = l.rank(weights) - 1;
  const Int count = l.call().integer("num_samples");
  if (!l.call().flag("replacement")) {
    const Value noisy = l.add(scores, gumbel(l, l.shape(weights)));
    return {top(l, noisy, count, last, true)[1]};
  }
  Shape draws = l.shape(weights);
  draws.insert(draws.end() - 1, count);
  const Value noisy = l.add(l.unsqueeze(scores, {last}), gumbel(l, draws));
  return {l.emit("ArgMax", {noisy}, {{"axis", {Int(last + 1)}}, {"keepdims", {Int(0)}}})};
}

Values normal(Lower& l) {
  const Dtype dtype = drawn_dtype(l.result().dtype);
  const Value x = random_normal(l, shape_of_result(l), dtype);
  return done(l, l.add(l.mul(x, l.in("std", dtype)), l.in("mean", dtype)));
}

Values bernoulli(Lower& l) {
  const std::string_view name = l.call().op().name;
  const Value p = l.in(name == "aten.bernoulli" ? "self" : "p", Dtype::f32);
  return done(l, l.compare("Less", random_uniform(l, shape_of_result(l), Dtype::f32), p));
}

Values cauchy(Lower& l) {
  const Value u = result_uniform(l);
  const Value angle = l.mul(l.sub(u, like(l, u, 0.5)), like(l, u, std::numbers::pi));
  const Value x = l.mul(l.unary("Tan", angle), l.in("sigma", l.dtype(u)));
  return done(l, l.add(x, l.in("median", l.dtype(u))));
}

Values exponential(Lower& l) {
  const Value u = result_positive(l);
  // torch gives no 0: models divide by it to choose at random.
  const Value waited = l.binary("Max", l.unary("Neg", l.unary("Log", u)),
                                like(l, u, 1 - largest_below_one(l.dtype(u))));
  return done(l, l.div(waited, l.in("lambd", l.dtype(u))));
}

Values geometric(Lower& l) {
  const Value u = result_positive(l);
  const Value steps = l.div(l.unary("Log", u), like(l, u, std::log1p(-l.real_number("p"))));
  return done(l, l.binary("Max", l.unary("Ceil", steps), like(l, u, 1)));
}

Values log_normal(Lower& l) {
  const Dtype dtype = drawn_dtype(l.result().dtype);
  const Value x = random_normal(l, shape_of_result(l), dtype);
  return done(l, l.unary("Exp", l.add(l.mul(x, l.in("std", dtype)), l.in("mean", dtype))));
}

// Without an end: all the whole numbers that the type has without a gap.
Values random_integers(Lower& l) {
  const Schema& schema = schema_of(l.call().op());
  const Value zero = l.number(std::int64_t{0}, Dtype::i64);
  const Value low = schema.find("from") == nullptr ? zero : l.in("from");
  if (schema.find("to") != nullptr && l.has("to")) return done(l, integers(l, low, l.in("to")));
  const Dtype dtype = l.result().dtype;
  const int bits = is_floating(dtype) ? significant_bits(dtype)
                   : dtype == Dtype::boolean
                       ? 1
                       : static_cast<int>(bit_count(dtype)) - (is_signed(dtype) ? 1 : 0);
  const Value u = random_uniform(l, shape_of_result(l), Dtype::f64);
  return done(l, l.add(l.cast(l.mul(u, like(l, u, std::ldexp(1.0, bits))), Dtype::i64), low));
}

Values uniform(Lower& l) {
  const Value u = result_uniform(l);
  const Value low = l.in("from", l.dtype(u)), high = l.in("to", l.dtype(u));
  return done(l, l.add(l.mul(u, l.sub(high, low)), low));
}

}  // namespace modelport::ops::onnx
