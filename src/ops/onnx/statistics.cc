// What is known of a sample: how large, how far apart, how many.
#include "ops/onnx/statistics.h"

#include <cmath>

#include "base/not_finite.h"
#include "ops/onnx/complex.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/reduce.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Dtype working(Lower& l) { return working_dtype(l.result().dtype); }

std::vector<std::int64_t> all_axes(Lower& l, Value x) {
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < l.rank(x); ++axis) axes.push_back(axis);
  return axes;
}

/// How often each of the numbers 0 ... count - 1 occurs; `indices` and `amounts` have one axis.
Value tally(Lower& l, Value indices, Value amounts, const Int& count) {
  const Value none = l.filled(like(l, amounts, 0), {count});
  return scatter_elements(l, none, indices, amounts, 0, "add");
}

double order_of(Lower& l) {
  const std::string_view name = schema_of(l.call().op()).find("ord") != nullptr ? "ord" : "p";
  return l.has(name) ? l.real_number(name) : 2;
}

struct Spread {
  Value variance;
  Value mean;  // the axes are there, with size 1
};

double correction_of(Lower& l) {
  if (schema_of(l.call().op()).find("correction") == nullptr)
    return l.call().flag("unbiased") ? 1 : 0;
  return l.has("correction") ? l.real_number("correction") : 1;
}

Spread spread(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim) {
  const double correction = correction_of(l);
  const Value mean = mean_along(l, x, axes, true);
  const bool complex = is_complex(l.dtype(x));
  const Value away = complex ? on_pairs(l, "Sub", x, mean) : l.sub(x, mean);
  const Value squares = complex ? l.reduce("ReduceSumSquare", l.as_pairs(away), {l.rank(x)}, false)
                                : l.mul(away, away);
  if (correction == 0) return {mean_along(l, squares, axes, keepdim), mean};
  const Value total = l.reduce("ReduceSum", squares, axes, keepdim);
  const Int count = reduced_count(l, x, axes);
  if (const auto number = count.constant()) {
    const double rest = std::max(0.0, static_cast<double>(*number) - correction);
    return {l.div(total, like(l, total, rest)), mean};
  }
  const Value rest = l.sub(l.cast(l.scalar(count), l.dtype(total)), like(l, total, correction));
  const bool enough = l.surely_at_least(count, static_cast<std::int64_t>(std::ceil(correction)));
  return {l.div(total, enough ? rest : l.binary("Max", rest, like(l, rest, 0))), mean};
}

Values spread_cell(Lower& l, bool root, bool with_mean) {
  const Dtype own = l.dtype(l.in("self"));
  const Value x = l.in("self", sum_dtype(own));
  const auto axes = reduced_axes(l);
  const bool keepdim = keeps_axes(l);
  const Spread found = spread(l, x, axes, keepdim);
  const Value width = root ? l.unary("Sqrt", found.variance) : found.variance;
  Values results = done(l, width);
  if (with_mean) results.push_back(l.cast(keepdim ? found.mean : l.squeeze(found.mean, axes), own));
  return results;
}

/// The elements at a place that may lie between two of them.
Value between(Lower& l, Value sorted, Value place, std::int64_t axis) {
  const std::string_view how = l.call().string("interpolation");
  const auto take = [&](std::string_view rounding) {
    return l.gather(sorted, l.cast(l.unary(rounding, place), Dtype::i64), axis);
  };
  if (how == "nearest") return take("Round");
  if (how == "lower") return take("Floor");
  if (how == "higher") return take("Ceil");
  const Value low = take("Floor"), high = take("Ceil");
  if (how == "midpoint") return l.mul(l.add(low, high), like(l, low, 0.5));
  std::vector<std::int64_t> behind;
  for (std::int64_t i = axis + 1; i < l.rank(sorted); ++i) behind.push_back(i - axis);
  const Value part = l.unsqueeze(l.sub(place, l.unary("Floor", place)), behind);
  return l.add(low, l.mul(l.sub(high, low), part));
}

/// The ends of a histogram: as given, or those of the data.
struct Ends {
  Value low, high;
};
Ends ends_of(Lower& l, Value x) {
  const double low = l.real_number("min"), high = l.real_number("max");
  const Value one = like(l, x, 1);
  if (low != high) return {like(l, x, low), like(l, x, high)};
  const Value least = l.reduce("ReduceMin", x, {0}, false);
  const Value most = l.reduce("ReduceMax", x, {0}, false);
  const Value same = l.compare("Equal", least, most);
  return {l.where(same, l.sub(least, one), least), l.where(same, l.add(most, one), most)};
}

}  // namespace

Values bincount(Lower& l) {
  const Value x = l.in("self", Dtype::i64);
  const Value longest = l.add(l.reduce("ReduceMax", x, {0}, true), l.ints({1}));
  const Value length = l.binary("Max", longest, l.size(l.call().integer("minlength")));
  const Dtype own = l.result().dtype;
  const Value none = l.emit("Expand", {l.number(0.0, own), length});
  const Value amounts =
      l.has("weights") ? l.in("weights", own) : l.filled(l.number(1.0, own), l.shape(x));
  return {scatter_elements(l, none, x, amounts, 0, "add")};
}

Values count_nonzero(Lower& l) {
  const Value x = l.in("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  const Value ones = l.cast(l.cast(x, Dtype::boolean), Dtype::i64);
  return {l.reduce("ReduceSum", ones, reduced_axes(l), false)};
}

Value norm_along(Lower& l, Value x, const Norm& norm) {
  if (is_complex(l.dtype(x))) return norm_along(l, complex_magnitude(l, x), norm);
  const auto reduced = [&](std::string_view op, Value v) {
    return l.reduce(op, v, norm.axes, norm.keepdim);
  };
  if (norm.order == 0) return reduced("ReduceSum", l.cast(l.cast(x, Dtype::boolean), l.dtype(x)));
  if (norm.axes.empty()) return l.unary("Abs", x);
  if (norm.order == 1) return reduced("ReduceL1", x);
  if (norm.order == 2) return reduced("ReduceL2", x);
  const Value size = l.unary("Abs", x);
  if (norm.order == kInfinity) return greatest_along(l, size, norm.axes, norm.keepdim);
  if (norm.order == -kInfinity) return least_along(l, size, norm.axes, norm.keepdim);
  const Value powers = l.binary("Pow", size, like(l, x, norm.order));
  return l.binary("Pow", reduced("ReduceSum", powers), like(l, x, 1 / norm.order));
}

Values dist(Lower& l) {
  const Dtype common = working_dtype(promote(l.call(), {"self", "other"}));
  const Value a = l.in("self", common), b = l.in("other", common);
  const Value away = is_complex(common) ? on_pairs(l, "Sub", a, b) : l.sub(a, b);
  return done(l, norm_along(l, away, {.order = l.real_number("p"), .axes = all_axes(l, away)}));
}

Values norm(Lower& l) {
  const bool asked = schema_of(l.call().op()).find("dtype") != nullptr && l.has("dtype");
  const Dtype own = l.dtype(l.in("self"));
  const Value x = l.in("self", working_dtype(asked ? *l.call().dtype("dtype") : own));
  return done(
      l,
      norm_along(l, x, {.order = order_of(l), .axes = reduced_axes(l), .keepdim = keeps_axes(l)}));
}

// Elements outside the ends go to a bin of their own, which is cut off.
Values histc(Lower& l) {
  const Value x = flat(l, l.in("self", working(l)));
  const Int bins = l.call().integer("bins");
  const auto [low, high] = ends_of(l, x);
  const Value count = l.cast(l.scalar(bins), l.dtype(x));
  const Value place = l.div(l.mul(l.sub(x, low), count), l.sub(high, low));
  const Value inside =
      l.binary("And", l.compare("GreaterOrEqual", x, low), l.compare("LessOrEqual", x, high));
  const Value index = l.binary("Min", l.cast(place, Dtype::i64), l.scalar(bins - 1));
  const Value ones = l.filled(like(l, x, 1), l.shape(x));
  const Value all = tally(l, l.where(inside, index, l.scalar(bins)), ones, bins + 1);
  return done(l, l.slice(all, 0, 0, bins));
}

Values logsumexp(Lower& l) {
  if (is_complex(l.result().dtype)) l.refuse("no rule for complex numbers");
  const Value x = l.in("self", working(l));
  return done(l, l.reduce("ReduceLogSumExp", x, reduced_axes(l), keeps_axes(l)));
}

Values quantile(Lower& l) {
  const Value self = l.in("self", working(l));
  const Value x = l.has("dim") && l.rank(self) > 0 ? self : flat(l, self);
  const std::int64_t axis = l.has("dim") && l.rank(self) > 0 ? l.axis("dim", l.rank(self)) : 0;
  const Int& size = l.shape(x)[at(axis)];
  const Value bad = is_nan(l, x);
  const Value sorted = top(l, l.where(bad, like(l, x, kInfinity), x), size, axis, false)[0];
  const Value given = l.in("q", working(l));
  const Value wanted = l.rank(given) == 0 ? l.unsqueeze(given, {0}) : given;
  const Value place = l.mul(wanted, l.cast(l.scalar(size - 1), l.dtype(x)));
  const Value any_bad =
      l.cast(l.reduce("ReduceMax", l.cast(bad, Dtype::u8), {axis}, true), Dtype::boolean);
  const Value found = l.where(any_bad, like(l, x, kNan), between(l, sorted, place, axis));
  return done(l, l.reshape(move_axis(l, found, axis, 0), l.result().shape));
}

Values std_cell(Lower& l) { return spread_cell(l, true, false); }
Values std_mean(Lower& l) { return spread_cell(l, true, true); }
Values var(Lower& l) { return spread_cell(l, false, false); }
Values var_mean(Lower& l) { return spread_cell(l, false, true); }

}  // namespace modelport::ops::onnx
