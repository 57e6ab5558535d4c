// Spread, histograms, quantiles.

#include "base/not_finite.h"
#include "ops/decompositions/reduce.h"

namespace modelport::ops::parts {
namespace {

Operand correction_of(Emitter& e) {
  if (!has_parameter(e, "correction")) return e.call().flag("unbiased") ? 1 : 0;
  return e.has("correction") ? e.arg("correction") : Operand(1);
}

struct Spread {
  Value x;
  Operand axes;
  bool keepdim;
  Value variance;
};

Spread spread(Terms& t) {
  Emitter& e = t.e;
  if (is_complex(e.dtype(e.tensor("self")))) e.refuse("no rule for complex numbers");
  const Value x = t.in("self");
  const Operand axes = axis_list(axes_of_call(e, e.rank(x)));
  const bool keepdim = keeps_axes(e);
  return {x, axes, keepdim,
          e.call("aten.var.correction", {x, axes},
                 {{"correction", correction_of(e)}, {"keepdim", keepdim}})};
}

Value mean_of(Terms& t, const Spread& found) {
  return t.cast(t.over("mean.dim", found.x, found.axes, found.keepdim), t.e.result(1).dtype);
}

/// The ends of a histogram: as given, or those of the data.
struct Ends {
  Operand low, high, width;
};
Ends ends_of(Terms& t, Value x) {
  const double low = t.e.real_number("min"), high = t.e.real_number("max");
  if (low != high) return {low, high, high - low};
  const Value least = t.of("min", x), most = t.of("max", x);
  const Value same = t.is("eq", least, most);
  const Value from = t.where(same, t.sub(least, 1.0), least);
  const Value to = t.where(same, t.add(most, 1.0), most);
  return {from, to, t.sub(to, from)};
}

/// The elements at a place that may lie between two of them.
Value between(Terms& t, Value sorted, Value place, std::int64_t axis) {
  const std::string_view how = t.e.call().string("interpolation");
  const auto take = [&](std::string_view rounding) {
    const Value index = t.cast(t.of(rounding, place), Dtype::i64);
    return t.e.call("aten.index_select", {sorted, axis, index});
  };
  if (how == "nearest") return take("round");
  if (how == "lower") return take("floor");
  if (how == "higher") return take("ceil");
  const Value low = take("floor"), high = take("ceil");
  if (how == "midpoint") return t.mul(t.add(low, high), 0.5);
  Shape behind{t.e.shape(place)[0]};
  for (std::int64_t i = axis + 1; i < t.e.rank(sorted); ++i) behind.push_back(1);
  const Value part = t.reshape(t.sub(place, t.of("floor", place)), behind);
  return t.add(low, t.mul(t.sub(high, low), part));
}

}  // namespace

Value var(Emitter& e) {
  Terms t(e);
  return t.done(spread(t).variance);
}

Value std(Emitter& e) {
  Terms t(e);
  return t.done(t.of("sqrt", spread(t).variance));
}

Values var_mean(Emitter& e) {
  Terms t(e);
  const Spread found = spread(t);
  return {t.done(found.variance), mean_of(t, found)};
}

Values std_mean(Emitter& e) {
  Terms t(e);
  const Spread found = spread(t);
  return {t.done(t.of("sqrt", found.variance)), mean_of(t, found)};
}

// Elements outside the ends count nothing, in the first bin.
Value histc(Emitter& e) {
  Terms t(e);
  const Value x = t.flat(t.in("self"));
  const Int bins = e.call().integer("bins");
  const auto [low, high, width] = ends_of(t, x);
  const Value inside = t.both(t.is("ge", x, low), t.is("le", x, high));
  const Value place = t.div(t.mul(t.sub(x, low), t.size(bins, e.dtype(x))), width);
  const Value index = t.cast(t.where(inside, place, 0.0), Dtype::i64);
  const Value last = t.size(bins - 1, Dtype::i64);
  return t.done(e.call("aten.scatter_add", {t.filled({bins}, 0.0, e.dtype(x)), 0,
                                            t.min(index, last), t.cast(inside, e.dtype(x))}));
}

Value logsumexp(Emitter& e) {
  Terms t(e);
  if (is_complex(e.result().dtype)) e.refuse("no rule for complex numbers");
  const Value x = t.in("self");
  const auto axes = axes_of_call(e, e.rank(x));
  if (axes.empty()) return t.done(x);
  const bool keepdim = keeps_axes(e);
  const auto shift = [&](bool keep) {
    const Value most = t.over("amax", x, axis_list(axes), keep);
    return t.where(t.of("isinf", most), 0.0, most);
  };
  const Value terms = t.of("exp", t.sub(x, shift(true)));
  const Value sum = t.over("sum.dim_IntList", terms, axis_list(axes), keepdim);
  return t.done(t.add(t.of("log", sum), shift(keepdim)));
}

Value quantile(Emitter& e) {
  Terms t(e);
  const Value self = t.in("self");
  const bool along = e.has("dim") && e.rank(self) > 0;
  const Value x = along ? self : t.flat(self);
  const std::int64_t axis = along ? e.axis("dim", e.rank(self)) : 0;
  const Int size = e.shape(x)[static_cast<std::size_t>(axis)];
  const Value bad = t.of("isnan", x);
  const Value numbers = t.where(bad, kInfinity, x);
  const Value sorted = e.calls("aten.topk", {numbers, size, axis, false, true})[0];
  const Value place = t.mul(t.flat(t.in("q")), t.size(size - 1, e.dtype(x)));
  const Value found =
      t.where(t.over("any.dim", bad, axis, true), kNan, between(t, sorted, place, axis));
  std::vector<std::int64_t> order{axis};
  for (std::int64_t i = 0; i < e.rank(found); ++i)
    if (i != axis) order.push_back(i);
  const Value first = axis == 0 ? found : e.call("aten.permute", {found, axis_list(order)});
  return t.done(t.reshape(first, e.result().shape));
}

}  // namespace modelport::ops::parts
