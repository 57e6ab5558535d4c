// Activations: computed in single precision where the operand has half of it.
#include "ops/decompositions/activation.h"

#include <cmath>

namespace modelport::ops::parts {
namespace {

/// Scaled and shifted so that mean and variance stay, as SELU wants it.
struct AlphaDropout {
  double scale, dropped;
};
AlphaDropout alpha_dropout_of(double p) {
  constexpr double kAlpha = 1.7580993408473766;
  const double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  return {scale, kAlpha * scale};
}

/// 1 where an element is kept, else 0; features are kept or dropped as a whole.
Value kept(Terms& t, Value x, double p, bool features) {
  Shape shape = t.e.shape(x);
  for (std::size_t axis = 2; features && axis < shape.size(); ++axis) shape[axis] = 1;
  const Value drawn = t.e.call("aten.rand", {shape}, {{"dtype", Dtype::f32}});
  return t.cast(t.is("ge", drawn, p), t.e.dtype(x));
}

}  // namespace

Value softplus_of(Terms& t, Value x) {
  const Value rest = t.of("log1p", t.of("exp", t.of("neg", t.of("abs", x))));
  return t.add(t.of("relu", x), rest);
}

Value celu(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  const double alpha = e.real_number("alpha");
  const Value below = t.mul(t.of("expm1", t.div(t.min(x, 0.0), alpha)), alpha);
  return t.done(t.add(t.of("relu", x), below));
}

Value dropout(Emitter& e) {
  Terms t(e);
  const Value own = e.tensor("input");
  const double p = e.real_number("p");
  if (!e.call().flag("train") || p == 0) return own;
  const std::string_view name = e.call().op().name;
  const bool alpha = name.find("alpha") != std::string_view::npos;
  const bool features = name.find("feature") != std::string_view::npos;
  if (p == 1) return t.mul(own, 0.0);
  const Value x = t.in("input");
  const Value mask = kept(t, x, p, features);
  if (!alpha) return t.done(t.mul(x, t.mul(mask, 1 / (1 - p))));
  const auto [scale, dropped] = alpha_dropout_of(p);
  const Value shift = t.add(t.mul(t.sub(mask, 1.0), dropped), dropped * p);
  return t.done(t.add(t.mul(x, t.mul(mask, scale)), shift));
}

Value hardshrink(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  return t.where(t.is("le", t.of("abs", x), e.arg("lambd")), 0.0, x);
}

Value hardsigmoid(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  return t.done(t.div(e.call("aten.clamp", {t.add(x, 3.0), 0.0, 6.0}), 6.0));
}

Value hardswish(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  return t.done(t.div(t.mul(x, e.call("aten.clamp", {t.add(x, 3.0), 0.0, 6.0})), 6.0));
}

Value log_sigmoid(Emitter& e) {
  Terms t(e);
  return t.done(t.of("neg", softplus_of(t, t.of("neg", t.in("self")))));
}

Values log_sigmoid_forward(Emitter& e) {
  Terms t(e);
  const Value rest = t.of("exp", t.of("neg", t.of("abs", t.in("self"))));
  return {log_sigmoid(e), t.cast(rest, e.result(1).dtype)};
}

Value mish(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  return t.done(t.mul(x, t.of("tanh", softplus_of(t, x))));
}

Values native_dropout(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("input");
  const double p = e.real_number("p");
  const bool drops = !e.has("train") || e.call().flag("train");
  if (!drops) return {x, t.filled(e.shape(x), true, Dtype::boolean)};
  const Value mask = kept(t, t.in("input"), p, false);
  const Value scaled = t.mul(t.in("input"), t.mul(mask, p == 1 ? 0.0 : 1 / (1 - p)));
  return {t.done(scaled), t.cast(mask, Dtype::boolean)};
}

Value prelu(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  Value slope = e.tensor("weight");
  if (e.rank(slope) == 1 && e.rank(x) != 1) {
    Shape shape(static_cast<std::size_t>(e.rank(x)), Int(1));
    if (e.rank(x) > 1) shape[1] = e.shape(slope)[0];
    slope = t.reshape(slope, shape);
  }
  return t.where(t.is("gt", x, 0), x, t.mul(x, slope));
}

Value relu6(Emitter& e) { return e.call("aten.clamp", {e.arg("self"), 0, 6}); }

Value rrelu(Emitter& e) {
  if (e.call().flag("training"))
    e.refuse("it draws slopes while it is trained; model.eval() works");
  const double slope = (e.real_number("lower") + e.real_number("upper")) / 2;
  return e.call("aten.leaky_relu", {e.arg("self"), slope});
}

Value selu(Emitter& e) {
  constexpr double kAlpha = 1.6732632423543772;
  constexpr double kScale = 1.0507009873554805;
  return e.call("aten.elu", {e.arg("self"), kAlpha, kScale});
}

Value silu(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  return t.done(t.mul(x, t.of("sigmoid", x)));
}

Value softplus(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  const double beta = e.real_number("beta");
  const Value scaled = beta == 1 ? x : t.mul(x, beta);
  const Value curve = softplus_of(t, scaled);
  const Value bent = beta == 1 ? curve : t.div(curve, beta);
  return t.done(t.where(t.is("gt", scaled, e.arg("threshold")), x, bent));
}

Value softshrink(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self");
  const double bound = e.real_number("lambd");
  const Value nearer = t.sub(x, e.call("aten.clamp", {x, -bound, bound}));
  return t.done(nearer);
}

Value threshold(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  return t.where(t.is("le", x, e.arg("threshold")), e.arg("value"), x);
}

}  // namespace modelport::ops::parts
