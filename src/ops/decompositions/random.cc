// Random numbers, from the runtime's uniform and normal ones in single precision.
#include <cmath>
#include <numbers>

#include "ops/decompositions/create.h"

namespace modelport::ops::parts {
namespace {

Value uniform_of(Terms& t, const Shape& shape, Dtype dtype = Dtype::f32) {
  return t.e.call("aten.rand", {shape}, {{"dtype", dtype}});
}
Value uniform_of_result(Terms& t) { return uniform_of(t, t.e.result().shape); }
/// In the result's type, in which it may not be rounded to 1.
Value uniform_as_result(Terms& t) { return uniform_of(t, t.e.result().shape, t.e.result().dtype); }

/// 1 - u, which is never 0, for logarithms.
Value positive_of_result(Terms& t) { return t.sub(1.0, uniform_of_result(t)); }

Value normal_of_result(Terms& t) {
  return t.e.call("aten.randn", {t.e.result().shape}, {{"dtype", Dtype::f32}});
}

/// -log(-log u): the greatest of log p + this is drawn with probability p. It is finite, so that
/// what has no probability is never drawn: u lies between the steps of a float, and never on 0
/// or 1.
Value gumbel(Terms& t, const Shape& shape) {
  const Value drawn = t.cast(uniform_of(t, shape), Dtype::f64);
  const Value u = t.sub(1 - std::ldexp(1.0, -25), drawn);
  const Value inner = t.of("neg", t.of("log", u));
  return t.cast(t.of("neg", t.of("log", inner)), Dtype::f32);
}

/// Whole numbers from low to high - 1, from two draws that make one of double precision.
Value integers(Terms& t, const Int& low, const Int& high) {
  const Shape& shape = t.e.result().shape;
  const Value coarse = t.cast(uniform_of(t, shape), Dtype::f64);
  const Value fine = t.mul(t.cast(uniform_of(t, shape), Dtype::f64), std::ldexp(1.0, -24));
  const Value scaled = t.mul(t.add(coarse, fine), t.size(high - low, Dtype::f64));
  // What rounding lifts to the end belongs to the last one.
  const Value steps =
      t.min(t.cast(t.of("floor", scaled), Dtype::i64), t.size(high - low - 1, Dtype::i64));
  return t.add(steps, t.size(low, Dtype::i64));
}

}  // namespace

Value bernoulli(Emitter& e) {
  Terms t(e);
  const Value p = t.in(e.call().op().name == "aten.bernoulli" ? "self" : "p", Dtype::f32);
  return t.done(t.is("lt", uniform_of_result(t), p));
}

Value cauchy(Emitter& e) {
  Terms t(e);
  const Value angle = t.mul(t.sub(uniform_of_result(t), 0.5), std::numbers::pi);
  return t.done(t.add(t.mul(t.of("tan", angle), e.arg("sigma")), e.arg("median")));
}

Value exponential(Emitter& e) {
  Terms t(e);
  // torch gives no 0: models divide by it to choose at random.
  const double least = 1 - largest_below_one(Dtype::f32);
  const Value waited = t.max(t.of("neg", t.of("log", positive_of_result(t))), least);
  return t.done(t.div(waited, e.arg("lambd")));
}

Value geometric(Emitter& e) {
  Terms t(e);
  const Value log = t.of("log", positive_of_result(t));
  const Value trials = t.of("ceil", t.div(log, std::log1p(-e.real_number("p"))));
  return t.done(t.max(trials, 1.0));
}

Value log_normal(Emitter& e) {
  Terms t(e);
  const Value x = t.add(t.mul(normal_of_result(t), e.arg("std")), e.arg("mean"));
  return t.done(t.of("exp", x));
}

Value multinomial(Emitter& e) {
  Terms t(e);
  const Value scores = t.of("log", t.in("self", Dtype::f32));
  const Int count = e.call().integer("num_samples");
  const std::int64_t last = e.rank(scores) - 1;
  Shape draws = e.shape(scores);
  if (!e.call().flag("replacement"))
    return e.calls("aten.topk", {t.add(scores, gumbel(t, draws)), count, last})[1];
  draws.insert(draws.end() - 1, count);
  const Value noisy = t.add(t.unsqueeze(scores, last), gumbel(t, draws));
  return e.call("aten.argmax", {noisy, last + 1});
}

Value normal(Emitter& e) {
  Terms t(e);
  const Value scaled = t.mul(normal_of_result(t), t.in("std", Dtype::f32));
  return t.done(t.add(scaled, t.in("mean", Dtype::f32)));
}

Value rand(Emitter& e) {
  Terms t(e);
  return uniform_as_result(t);
}

Value randint(Emitter& e) {
  Terms t(e);
  const Int low = has_parameter(e, "low") ? e.call().integer("low") : Int(0);
  return t.done(integers(t, low, e.call().integer("high")));
}

Value randn(Emitter& e) {
  Terms t(e);
  return t.done(normal_of_result(t));
}

// As many as the type can hold exactly, as torch has it.
Value random_integers(Emitter& e) {
  Terms t(e);
  const Int low = has_parameter(e, "from") ? e.call().integer("from") : Int(0);
  const bool bounded = has_parameter(e, "to") && e.has("to");
  if (!bounded && e.result().dtype != Dtype::f32)
    e.refuse("draws over all numbers of a type; x.random_(0, high) works");
  const Int high = bounded ? e.call().integer("to") : Int((std::int64_t{1} << 24) + 1);
  return t.done(integers(t, low, high));
}

Value randperm(Emitter& e) {
  Terms t(e);
  const Int n = e.call().integer("n");
  return t.done(e.calls("aten.topk", {uniform_of(t, {n}), n, 0})[1]);
}

Value uniform(Emitter& e) {
  Terms t(e);
  const double from = e.real_number("from"), to = e.real_number("to");
  const Value u = t.cast(uniform_as_result(t), working_dtype(e.result().dtype));
  return t.done(t.add(t.mul(u, to - from), from));
}

}  // namespace modelport::ops::parts
