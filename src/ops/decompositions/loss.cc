// Losses: terms for each element, and their reduction.
#include "ops/decompositions/loss.h"

#include <cmath>
#include <numbers>

#include "ops/decompositions/activation.h"
#include "ops/decompositions/reduce.h"

namespace modelport::ops::parts {
namespace {

/// 0: as they are, 1: the mean, 2: the sum.
Value reduced(Terms& t, Value terms) {
  const std::int64_t reduction = t.e.call().number("reduction");
  return t.done(reduction == 0 ? terms : reduction == 1 ? t.mean(terms) : t.total(terms));
}

Value away(Terms& t) { return t.sub(t.in("self"), t.in("target")); }

Value weighted(Terms& t, Value terms) {
  const Value weight = t.in("weight");
  return weight == kNoValue ? terms : t.mul(terms, weight);
}

/// Half the square up to `bound`, from there on a line.
Value square_then_line(Terms& t, Value distance, double bound, double scale) {
  const Value square = t.mul(t.mul(distance, distance), 0.5 * scale);
  const Value line = t.mul(t.sub(distance, bound / 2), bound * scale);
  return t.where(t.is("lt", distance, bound), square, line);
}

Value bounded_log(Terms& t, Value x) {
  return t.max(t.of("log", x), -100.0);  // torch's bound
}

/// The distance of two points, as torch's pairwise_distance has it.
Value distance(Terms& t, Value a, Value b) {
  const Value apart = t.add(t.sub(a, b), t.e.real_number("eps"));
  return norm_along(t, apart, {.order = t.e.real_number("p"), .axes = {t.e.rank(apart) - 1}});
}

// --- classes: log probabilities with an axis of classes, targets without it

std::int64_t class_axis(Terms& t, Value scores) { return t.e.rank(scores) > 1 ? 1 : 0; }

/// Targets that count, as truth, and with 0 for those that do not.
struct Targets {
  Value counts, index;
  Value weights;  // 1, or the weight of the class, where a target counts; else 0
};

Targets targets_of(Terms& t, Dtype dtype) {
  const Value target = t.in("target", Dtype::i64);
  const Value counts = t.is("ne", target, t.e.arg("ignore_index"));
  const Value index = t.where(counts, target, 0);
  const Value mask = t.cast(counts, dtype);
  const Value weight = t.in("weight", dtype);
  if (weight == kNoValue) return {counts, index, mask};
  const Value found = t.e.call("aten.index_select", {weight, 0, t.flat(index)});
  return {counts, index, t.mul(t.reshape(found, t.e.shape(index)), mask)};
}

/// What the scores say of each target.
Value picked(Terms& t, Value scores, Value index) {
  const std::int64_t axis = class_axis(t, scores);
  const Value found = t.e.call("aten.gather", {scores, axis, t.unsqueeze(index, axis)});
  return t.reshape(found, t.e.shape(index));
}

/// The mean is that of the targets that count, by their weights.
Value reduced_classes(Terms& t, Value terms, Value weights) {
  if (t.e.call().number("reduction") != 1) return reduced(t, terms);
  return t.done(t.div(t.total(terms), t.total(weights)));
}

Value likelihood_terms(Terms& t, Value scores, const Targets& targets) {
  return t.mul(t.of("neg", picked(t, scores, targets.index)), targets.weights);
}

/// The weights of the classes along the class axis of the scores.
Value class_weights(Terms& t, Value scores) {
  const Value weight = t.in("weight", t.e.dtype(scores));
  if (weight == kNoValue) return weight;
  Shape shape{t.e.shape(weight)[0]};
  for (std::int64_t i = class_axis(t, scores) + 1; i < t.e.rank(scores); ++i) shape.push_back(1);
  return t.reshape(weight, shape);
}

double share_of_each(Terms& t, Value scores, double smoothing) {
  if (smoothing == 0) return 0;
  const auto axis = static_cast<std::size_t>(class_axis(t, scores));
  const auto classes = t.e.shape(scores)[axis].constant();
  if (!classes) t.e.refuse("label smoothing over a number of classes that is not fixed");
  return smoothing / static_cast<double>(*classes);
}

/// Targets that are probabilities of the classes.
Value cross_entropy_of_probabilities(Terms& t, Value log, double smoothing) {
  const std::int64_t axis = class_axis(t, log);
  Value target = t.in("target", t.e.dtype(log));
  if (smoothing != 0)
    target = t.add(t.mul(target, 1 - smoothing), share_of_each(t, log, smoothing));
  Value terms = t.mul(log, target);
  if (const Value weights = class_weights(t, log); weights != kNoValue)
    terms = t.mul(terms, weights);
  const Value sums = t.of("neg", t.over("sum.dim_IntList", terms, {axis}));
  return reduced(t, sums);
}

}  // namespace

Value binary_cross_entropy(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self"), target = t.in("target");
  const Value hit = t.mul(target, bounded_log(t, x));
  const Value miss = t.mul(t.sub(1.0, target), bounded_log(t, t.sub(1.0, x)));
  return reduced(t, weighted(t, t.of("neg", t.add(hit, miss))));
}

Value binary_cross_entropy_with_logits(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self"), target = t.in("target");
  Value curve = softplus_of(t, t.of("neg", x));
  if (const Value positive = t.in("pos_weight"); positive != kNoValue)
    curve = t.mul(curve, t.add(t.mul(t.sub(positive, 1.0), target), 1.0));
  return reduced(t, weighted(t, t.add(t.mul(t.sub(1.0, target), x), curve)));
}

Value cross_entropy_loss(Emitter& e) {
  Terms t(e);
  const Value scores = t.in("self");
  const std::int64_t axis = class_axis(t, scores);
  const Value log = e.call("aten._log_softmax", {scores, axis, false});
  const double smoothing = e.real_number("label_smoothing");
  if (is_floating(e.dtype(e.tensor("target"))))
    return cross_entropy_of_probabilities(t, log, smoothing);
  const Targets targets = targets_of(t, e.dtype(scores));
  const Value sharp = likelihood_terms(t, log, targets);
  if (smoothing == 0) return reduced_classes(t, sharp, targets.weights);
  Value all = log;
  if (const Value weights = class_weights(t, log); weights != kNoValue) all = t.mul(all, weights);
  const Value spread =
      t.mul(t.over("sum.dim_IntList", all, {axis}), t.cast(targets.counts, e.dtype(scores)));
  const Value terms =
      t.sub(t.mul(sharp, 1 - smoothing), t.mul(spread, share_of_each(t, log, smoothing)));
  return reduced_classes(t, terms, targets.weights);
}

Value huber_loss(Emitter& e) {
  Terms t(e);
  return reduced(t, square_then_line(t, t.of("abs", away(t)), e.real_number("delta"), 1));
}

Value kl_div(Emitter& e) {
  Terms t(e);
  const Value x = t.in("self"), target = t.in("target");
  if (e.call().flag("log_target")) return reduced(t, t.mul(t.of("exp", target), t.sub(target, x)));
  return reduced(t, t.sub(e.call("aten.xlogy.Tensor", {target, target}), t.mul(target, x)));
}

Value l1_loss(Emitter& e) {
  Terms t(e);
  return reduced(t, t.of("abs", away(t)));
}

Value margin_ranking_loss(Emitter& e) {
  Terms t(e);
  const Value apart = t.sub(t.in("input2"), t.in("input1"));
  return reduced(t, t.of("relu", t.add(t.mul(t.in("target"), apart), e.arg("margin"))));
}

Value mse_loss(Emitter& e) {
  Terms t(e);
  const Value apart = away(t);
  return reduced(t, t.mul(apart, apart));
}

Value nll_loss(Emitter& e) {
  Terms t(e);
  const Value scores = t.in("self");
  const Targets targets = targets_of(t, e.dtype(scores));
  return reduced_classes(t, likelihood_terms(t, scores, targets), targets.weights);
}

Values nll_loss_forward(Emitter& e) {
  Terms t(e);
  const Dtype dtype = e.result(1).dtype;
  const bool each = e.call().number("reduction") == 0;
  const Value weight =
      each ? t.filled({}, 0.0, dtype) : t.cast(t.total(targets_of(t, Dtype::f32).weights), dtype);
  return {nll_loss(e), weight};
}

Value poisson_nll_loss(Emitter& e) {
  Terms t(e);
  const Value x = t.in("input"), target = t.in("target");
  const bool log_input = e.call().flag("log_input");
  const Value rate = log_input ? t.of("exp", x) : x;
  const Value log_rate = log_input ? x : t.of("log", t.add(x, e.real_number("eps")));
  Value terms = t.sub(rate, t.mul(target, log_rate));
  if (e.call().flag("full")) {
    const Value many = t.is("gt", target, 1);
    const Value safe = t.where(many, target, 1.0);
    const Value log = t.of("log", safe);
    // Stirling's formula.
    const Value root = t.mul(t.add(log, std::log(2 * std::numbers::pi)), 0.5);
    const Value factorial = t.add(t.sub(t.mul(safe, log), safe), root);
    terms = t.add(terms, t.where(many, factorial, 0.0));
  }
  return reduced(t, terms);
}

Value smooth_l1_loss(Emitter& e) {
  Terms t(e);
  const Value apart = t.of("abs", away(t));
  const double beta = e.real_number("beta");
  return reduced(t, beta == 0 ? apart : square_then_line(t, apart, beta, 1 / beta));
}

Value soft_margin_loss(Emitter& e) {
  Terms t(e);
  return reduced(t, softplus_of(t, t.of("neg", t.mul(t.in("target"), t.in("self")))));
}

Value triplet_margin_loss(Emitter& e) {
  Terms t(e);
  const Value anchor = t.in("anchor");
  const Value positive = t.in("positive"), negative = t.in("negative");
  const Value near = distance(t, anchor, positive);
  Value far = distance(t, anchor, negative);
  if (e.call().flag("swap")) far = t.min(far, distance(t, positive, negative));
  return reduced(t, t.of("relu", t.add(t.sub(near, far), e.real_number("margin"))));
}

}  // namespace modelport::ops::parts
