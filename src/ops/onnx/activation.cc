// Activations: one operator of ONNX where the opset has it.
#include "ops/onnx/activation.h"

#include <cmath>
#include <numbers>

#include "ops/onnx/kernels.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/random.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Value operand(Lower& l) { return l.in("self", working_dtype(l.result().dtype)); }

/// One operator with attributes, in a type that there is a kernel for.
Values one_operator(Lower& l, std::string_view op, const Attributes& attributes = {}) {
  const Value x = l.in("self", kernel_dtype(op, l.result().dtype));
  return done(l, l.emit(op, {x}, attributes, l.type(x)));
}

Attribute real(std::string_view name, double value) { return {std::string(name), {value}}; }

Value clipped(Lower& l, Value x, double low, double high) {
  return l.emit("Clip", {x, like(l, x, low), like(l, x, high)}, {}, l.type(x));
}

/// x Phi(x), written out for opsets without Gelu.
Value gelu_by_parts(Lower& l, Value x, bool by_tanh) {
  const Value half = like(l, x, 0.5), one = like(l, x, 1);
  Value inner;
  if (by_tanh) {
    const Value cube = l.mul(l.mul(l.mul(x, x), x), like(l, x, 0.044715));
    const double root = std::sqrt(2 / std::numbers::pi);
    inner = l.unary("Tanh", l.mul(l.add(x, cube), like(l, x, root)));
  } else {
    inner = l.unary("Erf", l.mul(x, like(l, x, 1 / std::numbers::sqrt2)));
  }
  return l.mul(l.mul(x, half), l.add(inner, one));
}

/// What is kept is scaled up, so that the mean stays.
Value kept_of(Lower& l, Value x, Value kept, double p) {
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return l.mul(x, l.mul(l.cast(kept, l.dtype(x)), like(l, x, scale)));
}

/// The mask of whole channels: one draw for each of the first two axes.
Value channels(Lower& l, Value x) {
  Shape shape = l.shape(x);
  for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = 1;
  return l.filled(like(l, x, 1), shape);
}

struct Drop {
  double p;
  bool active;
};
Drop drop_of(Lower& l) {
  const double p = l.real_number("p");
  return {p, l.call().flag("train") && p != 0};
}

}  // namespace

Values celu(Lower& l) {
  const Value x = l.in("self", Dtype::f32);
  return done(l, l.emit("Celu", {x}, {real("alpha", l.real_number("alpha"))}, l.type(x)));
}

Values dropout(Lower& l) {
  const Drop drop = drop_of(l);
  const Value x = l.in("input");
  if (!drop.active) return {x};
  return done(l,
              kept_of(l, l.cast(x, working_dtype(l.dtype(x))), random_mask(l, x, drop.p), drop.p));
}

// Dropped elements become the value of selu at minus infinity, and all of it is scaled so that mean
// and variance stay.
Values alpha_dropout(Lower& l) {
  const Drop drop = drop_of(l);
  const Value input = l.in("input");
  if (!drop.active) return {input};
  const Value x = l.cast(input, working_dtype(l.dtype(input)));
  const bool by_channel = l.call().op().name == "aten.feature_alpha_dropout";
  const Value ones = by_channel ? channels(l, x) : x;
  const Value kept = l.cast(random_mask(l, ones, drop.p), l.dtype(x));
  constexpr double kAlpha = 1.7580993408473766;
  const double a = 1 / std::sqrt((kAlpha * kAlpha * drop.p + 1) * (1 - drop.p));
  const Value rest = l.mul(l.sub(kept, like(l, x, 1)), like(l, x, kAlpha * a));
  const Value shift = l.add(rest, like(l, x, kAlpha * a * drop.p));
  return done(l, l.add(l.mul(x, l.mul(kept, like(l, x, a))), shift));
}

Values feature_dropout(Lower& l) {
  const Drop drop = drop_of(l);
  const Value input = l.in("input");
  if (!drop.active) return {input};
  const Value x = l.cast(input, working_dtype(l.dtype(input)));
  return done(l, kept_of(l, x, random_mask(l, channels(l, x), drop.p), drop.p));
}

Values native_dropout(Lower& l) {
  const Value x = l.in("input");
  const double p = l.real_number("p");
  const bool train = !l.has("train") || l.call().flag("train");
  if (!train || p == 0) {
    const Value kept = l.number(std::int64_t{1}, Dtype::boolean);
    return {x, l.filled(kept, l.shape(x))};
  }
  const Value kept = random_mask(l, x, p);
  return {l.cast(kept_of(l, l.cast(x, working_dtype(l.dtype(x))), kept, p), l.dtype(x)), kept};
}

Values elu(Lower& l) {
  const double alpha = l.real_number("alpha"), scale = l.real_number("scale");
  const double inner = l.real_number("input_scale");
  if (scale == 1 && inner == 1) return one_operator(l, "Elu", {real("alpha", alpha)});
  const Value x = operand(l);
  const Value zero = like(l, x, 0);
  const Value below = l.binary("Min", l.mul(x, like(l, x, inner)), zero);
  const Value curve = l.mul(l.sub(l.unary("Exp", below), like(l, x, 1)), like(l, x, alpha * scale));
  return done(l, l.where(l.compare("Greater", x, zero), l.mul(x, like(l, x, scale)), curve));
}

Values gelu(Lower& l) {
  const bool by_tanh = l.call().string("approximate") == "tanh";
  if (l.opset() < 20) return done(l, gelu_by_parts(l, operand(l), by_tanh));
  if (!by_tanh) return one_operator(l, "Gelu");
  return one_operator(l, "Gelu", {{"approximate", {std::string("tanh")}}});
}

Values glu(Lower& l) {
  const Value x = operand(l);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  Shape half = l.shape(x);
  half[static_cast<std::size_t>(axis)] = l.result().shape[static_cast<std::size_t>(axis)];
  Attributes attributes{{"axis", {Int(axis)}}};
  // Equal parts are the default before opset 18; from there on their number must be given.
  if (l.opset() >= 18) attributes.push_back({"num_outputs", {Int(2)}});
  const ir::TensorType type{l.dtype(x), half};
  const Values parts = l.emit_many("Split", {x}, attributes, {type, type});
  return done(l, l.mul(parts[0], l.unary("Sigmoid", parts[1])));
}

// Not Shrink: it makes 0 of NaN.
Values hardshrink(Lower& l) {
  const Value x = operand(l);
  const Value near = l.compare("LessOrEqual", l.unary("Abs", x), l.in("lambd", l.dtype(x)));
  return done(l, l.where(near, like(l, x, 0), x));
}

Values hardsigmoid(Lower& l) {
  return one_operator(l, "HardSigmoid", {real("alpha", 1.0 / 6), real("beta", 0.5)});
}

Values hardswish(Lower& l) { return one_operator(l, "HardSwish"); }

Values hardtanh(Lower& l) {
  const Value x = operand(l);
  const Value low = l.in("min_val", l.dtype(x)), high = l.in("max_val", l.dtype(x));
  return done(l, l.emit("Clip", {x, low, high}, {}, l.type(x)));
}

Values leaky_relu(Lower& l) {
  return one_operator(l, "LeakyRelu", {real("alpha", l.real_number("negative_slope"))});
}

Value softplus_of(Lower& l, Value x) { return l.unary("Softplus", x); }

Values log_sigmoid(Lower& l) {
  const Value x = operand(l);
  return done(l, l.unary("Neg", softplus_of(l, l.unary("Neg", x))));
}

// What the backward pass wants on the CPU: exp(-|x|).
Values log_sigmoid_forward(Lower& l) {
  const Value x = operand(l);
  const Value buffer = l.unary("Exp", l.unary("Neg", l.unary("Abs", x)));
  return {log_sigmoid(l)[0], l.cast(buffer, l.result(1).dtype)};
}

Values mish(Lower& l) {
  if (l.opset() >= 18) return one_operator(l, "Mish");
  const Value x = operand(l);
  return done(l, l.mul(x, l.unary("Tanh", softplus_of(l, x))));
}

// The slopes belong to the second axis.
Values prelu(Lower& l) {
  const Dtype work = kernel_dtype("PRelu", l.result().dtype);
  const Value x = l.in("self", work);
  Value slope = l.in("weight", work);
  if (l.rank(x) > 2 && l.rank(slope) == 1 && !(l.shape(slope)[0] == Int(1))) {
    std::vector<std::int64_t> axes;
    for (std::int64_t i = 1; i < l.rank(x) - 1; ++i) axes.push_back(i);
    slope = l.unsqueeze(slope, axes);
  }
  if (l.rank(x) == 0) slope = l.reshape(slope, {});
  return done(l, l.emit("PRelu", {x, slope}, {}, l.type(x)));
}

Values relu(Lower& l) {
  const Value x = operand(l);
  if (is_whole(l.dtype(x))) return done(l, l.binary("Max", x, like(l, x, 0)));
  return done(l, l.unary("Relu", x));
}

Values relu6(Lower& l) { return done(l, clipped(l, operand(l), 0, 6)); }

Values rrelu(Lower& l) {
  if (l.call().flag("training")) l.refuse("the random slopes of training");
  const double slope = (l.real_number("lower") + l.real_number("upper")) / 2;
  return one_operator(l, "LeakyRelu", {real("alpha", slope)});
}

Values selu(Lower& l) { return one_operator(l, "Selu"); }

Values silu(Lower& l) {
  if (l.opset() >= 24) return one_operator(l, "Swish");
  const Value x = operand(l);
  return done(l, l.mul(x, l.unary("Sigmoid", x)));
}

Values softplus(Lower& l) {
  const Value x = operand(l);
  const double beta = l.real_number("beta"), threshold = l.real_number("threshold");
  const bool plain = beta == 1;
  const Value scaled = plain ? x : l.mul(x, like(l, x, beta));
  const Value smooth = softplus_of(l, scaled);
  const Value curve = plain ? smooth : l.div(smooth, like(l, x, beta));
  // From 16 on the curve is the straight line in every digit of a float.
  if (threshold >= 16 && l.dtype(x) != Dtype::f64) return done(l, curve);
  return done(l, l.where(l.compare("Greater", scaled, like(l, x, threshold)), x, curve));
}

Values softshrink(Lower& l) {
  const Value x = operand(l);
  const double bound = l.real_number("lambd");
  return done(l, l.sub(x, clipped(l, x, -bound, bound)));
}

Values threshold(Lower& l) {
  const Value x = operand(l);
  const Value below = l.compare("LessOrEqual", x, l.in("threshold", l.dtype(x)));
  return done(l, l.where(below, l.in("value", l.dtype(x)), x));
}

}  // namespace modelport::ops::onnx
