// Losses: pointwise terms and their reduction; losses over classes have operators of their own.
#include "ops/onnx/loss.h"

#include <cmath>
#include <numbers>

#include "ops/onnx/activation.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/reduce.h"
#include "ops/onnx/statistics.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Dtype working(Lower& l) { return working_dtype(l.result().dtype); }

std::vector<std::int64_t> all_axes(Lower& l, Value x) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < l.rank(x); ++axis) axes.push_back(axis);
  return axes;
}

Value total(Lower& l, Value x) { return l.reduce("ReduceSum", x, all_axes(l, x), false); }

/// 0: as they are, 1: the mean, 2: the sum.
Values reduced(Lower& l, Value terms) {
  const std::int64_t reduction = l.call().number("reduction");
  const Value result = reduction == 0   ? terms
                       : reduction == 1 ? mean_along(l, terms, all_axes(l, terms), false)
                                        : total(l, terms);
  return {l.cast(result, l.result().dtype)};
}

struct Operands {
  Value x, t;
};
Operands operands(Lower& l, std::string_view x = "self") {
  return {l.in(x, working(l)), l.in("target", working(l))};
}

Value weighted(Lower& l, Value terms) {
  const Value weight = l.in("weight", l.dtype(terms));
  return weight == kNoValue ? terms : l.mul(terms, weight);
}

/// Half the square up to `bound`, from there on a line.
Value square_then_line(Lower& l, Value away, double bound, double scale) {
  const Value square = l.mul(l.mul(away, away), like(l, away, 0.5 * scale));
  const Value line = l.mul(l.sub(away, like(l, away, bound / 2)), like(l, away, bound * scale));
  return l.where(l.compare("Less", away, like(l, away, bound)), square, line);
}

Value logarithm(Lower& l, Value x) {
  return l.binary("Max", l.unary("Log", x), like(l, x, -100));  // torch's bound
}

Value times_log(Lower& l, Value x) {
  const Value zero = like(l, x, 0);
  return l.where(l.compare("Equal", x, zero), zero, l.mul(x, l.unary("Log", x)));
}

// --- classes
// --------------------------------------------------------------------------------------

std::int64_t class_axis(Lower& l, Value scores) { return l.rank(scores) > 1 ? 1 : 0; }

/// A plain number, which the operators of ONNX have as an attribute.
std::int64_t ignored_class(Lower& l) {
  const auto index = l.call().integer("ignore_index").constant();
  if (!index) l.refuse("ignore_index must be a number that is known before the program runs");
  return *index;
}

/// One of the two operators for losses over classes; scores without a batch get one.
Value class_loss(Lower& l, std::string_view op, std::string_view reduction) {
  Value scores = l.in("self", working(l));
  Value target = l.in("target", Dtype::i64);
  const bool single = l.rank(scores) == 1;
  if (single) {
    scores = l.unsqueeze(scores, {0});
    target = l.reshape(target, {1});
  }
  const Shape shape = reduction == "none" ? l.shape(target) : Shape{};
  const Value loss =
      l.emit(op, {scores, target, l.in("weight", l.dtype(scores))},
             {{"ignore_index", {Int(ignored_class(l))}}, {"reduction", {std::string(reduction)}}},
             {l.dtype(scores), shape});
  return single && reduction == "none" ? l.squeeze(loss, {0}) : loss;
}

std::string_view reduction_name(Lower& l) {
  const std::int64_t reduction = l.call().number("reduction");
  return reduction == 0 ? "none" : reduction == 1 ? "mean" : "sum";
}

/// The weights of the classes along the class axis of the scores.
Value class_weights(Lower& l, Value scores) {
  const Value weight = l.in("weight", l.dtype(scores));
  if (weight == kNoValue) return weight;
  std::vector<std::int64_t> behind;
  for (std::int64_t i = class_axis(l, scores) + 1; i < l.rank(scores); ++i)
    behind.push_back(i - class_axis(l, scores));
  return l.unsqueeze(weight, behind);
}

/// 1, or the weight of its class, where the target counts; else 0.
Value target_weights(Lower& l, Value scores) {
  const Value target = l.in("target", Dtype::i64);
  const Value counts =
      l.logical_not(l.compare("Equal", target, l.number(ignored_class(l), Dtype::i64)));
  const Value mask = l.cast(counts, l.dtype(scores));
  const Value weight = l.in("weight", l.dtype(scores));
  if (weight == kNoValue) return mask;
  const Value index = l.where(counts, target, l.number(std::int64_t{0}, Dtype::i64));
  return l.mul(l.gather(weight, index, 0), mask);
}

Value log_softmax(Lower& l, Value scores) {
  return l.emit("LogSoftmax", {scores}, {{"axis", {Int(class_axis(l, scores))}}}, l.type(scores));
}

/// Targets that are probabilities of the classes.
Values cross_entropy_of_probabilities(Lower& l, Value scores, double smoothing) {
  const std::int64_t axis = class_axis(l, scores);
  const auto classes = l.shape(scores)[at(axis)].constant();
  if (smoothing != 0 && !classes)
    l.refuse("label smoothing over a number of classes that is not fixed");
  Value target = l.in("target", l.dtype(scores));
  if (smoothing != 0) {
    target = l.add(l.mul(target, like(l, target, 1 - smoothing)),
                   like(l, target, smoothing / static_cast<double>(*classes)));
  }
  Value terms = l.mul(log_softmax(l, scores), target);
  if (const Value weights = class_weights(l, scores); weights != kNoValue)
    terms = l.mul(terms, weights);
  return reduced(l, l.unary("Neg", l.reduce("ReduceSum", terms, {axis}, false)));
}

/// A part of each target is spread over all classes.
Values smoothed_cross_entropy(Lower& l, Value scores, double smoothing) {
  const std::int64_t axis = class_axis(l, scores);
  const auto classes = l.shape(scores)[at(axis)].constant();
  if (!classes) l.refuse("label smoothing over a number of classes that is not fixed");
  Value all = log_softmax(l, scores);
  const Value target = l.in("target", Dtype::i64);
  const Value counts =
      l.logical_not(l.compare("Equal", target, l.number(ignored_class(l), Dtype::i64)));
  if (const Value weights = class_weights(l, scores); weights != kNoValue)
    all = l.mul(all, weights);
  const Value spread =
      l.mul(l.reduce("ReduceSum", all, {axis}, false), l.cast(counts, l.dtype(all)));
  const Value sharp =
      l.mul(class_loss(l, "SoftmaxCrossEntropyLoss", "none"), like(l, all, 1 - smoothing));
  const double part = smoothing / static_cast<double>(*classes);
  const Value terms = l.sub(sharp, l.mul(spread, like(l, all, part)));
  if (l.call().number("reduction") != 1) return reduced(l, terms);
  return {l.cast(l.div(total(l, terms), total(l, target_weights(l, scores))), l.result().dtype)};
}

/// The distance of two points, as torch's pairwise_distance has it.
Value distance(Lower& l, Value a, Value b) {
  const Value away = l.add(l.sub(a, b), like(l, a, l.real_number("eps")));
  return norm_along(l, away, {.order = l.real_number("p"), .axes = {l.rank(away) - 1}});
}

}  // namespace

Values binary_cross_entropy(Lower& l) {
  const auto [x, t] = operands(l);
  const Value one = like(l, x, 1);
  const Value hit = l.mul(t, logarithm(l, x));
  const Value miss = l.mul(l.sub(one, t), logarithm(l, l.sub(one, x)));
  return reduced(l, weighted(l, l.unary("Neg", l.add(hit, miss))));
}

Values binary_cross_entropy_with_logits(Lower& l) {
  const auto [x, t] = operands(l);
  const Value one = like(l, x, 1);
  Value curve = softplus_of(l, l.unary("Neg", x));
  if (const Value positive = l.in("pos_weight", l.dtype(x)); positive != kNoValue)
    curve = l.mul(curve, l.add(l.mul(l.sub(positive, one), t), one));
  return reduced(l, weighted(l, l.add(l.mul(l.sub(one, t), x), curve)));
}

Values cross_entropy_loss(Lower& l) {
  const Value scores = l.in("self", working(l));
  const double smoothing = l.real_number("label_smoothing");
  if (is_floating(l.dtype(l.in("target"))))
    return cross_entropy_of_probabilities(l, scores, smoothing);
  if (smoothing != 0) return smoothed_cross_entropy(l, scores, smoothing);
  return {l.cast(class_loss(l, "SoftmaxCrossEntropyLoss", reduction_name(l)), l.result().dtype)};
}

Values huber_loss(Lower& l) {
  const auto [x, t] = operands(l);
  return reduced(l, square_then_line(l, l.unary("Abs", l.sub(x, t)), l.real_number("delta"), 1));
}

Values kl_div(Lower& l) {
  const auto [x, t] = operands(l);
  if (l.call().flag("log_target")) return reduced(l, l.mul(l.unary("Exp", t), l.sub(t, x)));
  return reduced(l, l.sub(times_log(l, t), l.mul(t, x)));
}

Values l1_loss(Lower& l) {
  const auto [x, t] = operands(l);
  return reduced(l, l.unary("Abs", l.sub(x, t)));
}

Values margin_ranking_loss(Lower& l) {
  const Value away = l.sub(l.in("input2", working(l)), l.in("input1", working(l)));
  const Value terms =
      l.add(l.mul(l.in("target", working(l)), away), like(l, away, l.real_number("margin")));
  return reduced(l, l.unary("Relu", terms));
}

Values mse_loss(Lower& l) {
  const auto [x, t] = operands(l);
  const Value away = l.sub(x, t);
  return reduced(l, l.mul(away, away));
}

Values nll_loss(Lower& l) {
  return {l.cast(class_loss(l, "NegativeLogLikelihoodLoss", reduction_name(l)), l.result().dtype)};
}

Values nll_loss_forward(Lower& l) {
  const Value scores = l.in("self", working(l));
  const Value weight = l.call().number("reduction") == 0 ? l.number(0.0, l.dtype(scores))
                                                         : total(l, target_weights(l, scores));
  return {nll_loss(l)[0], l.cast(weight, l.result(1).dtype)};
}

Values poisson_nll_loss(Lower& l) {
  const auto [x, t] = operands(l, "input");
  const bool log_input = l.call().flag("log_input");
  const Value rate = log_input ? l.unary("Exp", x) : x;
  const Value log_rate = log_input ? x : l.unary("Log", l.add(x, like(l, x, l.real_number("eps"))));
  Value terms = l.sub(rate, l.mul(t, log_rate));
  if (l.call().flag("full")) {
    const Value one = like(l, x, 1);
    const Value many = l.compare("Greater", t, one);
    const Value safe = l.where(many, t, one);
    const Value log = l.unary("Log", safe);
    // Stirling's formula.
    const Value root =
        l.mul(l.add(log, like(l, x, std::log(2 * std::numbers::pi))), like(l, x, 0.5));
    const Value factorial = l.add(l.sub(l.mul(safe, log), safe), root);
    terms = l.add(terms, l.where(many, factorial, like(l, x, 0)));
  }
  return reduced(l, terms);
}

Values smooth_l1_loss(Lower& l) {
  const auto [x, t] = operands(l);
  const Value away = l.unary("Abs", l.sub(x, t));
  const double beta = l.real_number("beta");
  return reduced(l, beta == 0 ? away : square_then_line(l, away, beta, 1 / beta));
}

Values soft_margin_loss(Lower& l) {
  const auto [x, t] = operands(l);
  return reduced(l, softplus_of(l, l.unary("Neg", l.mul(t, x))));
}

Values triplet_margin_loss(Lower& l) {
  const Value anchor = l.in("anchor", working(l));
  const Value positive = l.in("positive", working(l)), negative = l.in("negative", working(l));
  const Value near = distance(l, anchor, positive);
  Value far = distance(l, anchor, negative);
  if (l.call().flag("swap")) far = l.binary("Min", far, distance(l, positive, negative));
  return reduced(l,
                 l.unary("Relu", l.add(l.sub(near, far), like(l, near, l.real_number("margin")))));
}

}  // namespace modelport::ops::onnx
