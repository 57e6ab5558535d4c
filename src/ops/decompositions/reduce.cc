// Reductions: truth, extremes, sums, medians.
#include "ops/decompositions/reduce.h"

#include "base/not_finite.h"

namespace modelport::ops::parts {
namespace {

Value any_of(Terms& t, Value truth, const std::vector<std::int64_t>& axes, bool keepdim) {
  if (axes.empty()) return truth;
  return t.over("any.dims", truth, axis_list(axes), keepdim);
}

Value truth_of(Terms& t, Value x) { return t.e.dtype(x) == Dtype::boolean ? x : t.is("ne", x, 0); }

/// Where the element stands that is the `count`-th in order, of equal ones the earlier first.
Value place_in_order(Terms& t, Value x, Value element, std::int64_t axis, const Int& count) {
  const Value equal = t.is("eq", x, element);
  const Value less = t.over("sum.dim_IntList", t.is("lt", x, element), {axis}, true);
  const Value nth = t.e.call("aten.cumsum", {t.cast(equal, Dtype::i64), axis});
  return t.both(equal, t.is("eq", nth, t.sub(t.size(count, Dtype::i64), less)));
}

}  // namespace

// Not one of them is false.
Value all(Emitter& e) {
  Terms t(e);
  const Value lacks = t.of("logical_not", e.tensor("self"));
  const auto axes = axes_of_call(e, e.rank(lacks));
  return t.done(t.of("logical_not", any_of(t, lacks, axes, keeps_axes(e))));
}

Value any(Emitter& e) {
  Terms t(e);
  const Value truth = truth_of(t, e.tensor("self"));
  return t.done(any_of(t, truth, axes_of_call(e, e.rank(truth)), keeps_axes(e)));
}

Values aminmax(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  const Operand axes = axis_list(axes_of_call(e, e.rank(x)));
  return {t.over("amin", x, axes, keeps_axes(e)), t.over("amax", x, axes, keeps_axes(e))};
}

// The lower one of the two in the middle: the last of the first half, in order. One that is no
// number makes all of them so.
Values median(Emitter& e) {
  Terms t(e);
  const Value own = e.tensor("self");
  const bool whole = !has_parameter(e, "dim");
  if (e.call().op().name.find("nan") != std::string_view::npos && is_floating(e.dtype(own)))
    e.refuse("how many elements count depends on the data");
  if (e.rank(own) == 0) return whole ? Values{own} : Values{own, t.filled({}, 0, Dtype::i64)};
  const Value x = whole ? t.flat(own) : own;
  const std::int64_t axis = whole ? 0 : e.axis("dim", e.rank(x));
  const Int half = shape::floor_div(e.shape(x)[static_cast<std::size_t>(axis)] + 1, 2);
  const Value lower = e.calls("aten.topk", {x, half, axis, false, true})[0];
  const Value found = t.slice(lower, axis, half - 1, half);
  const Value bad = is_floating(e.dtype(x)) ? t.of("isnan", x) : kNoValue;
  const Value any_bad = bad == kNoValue ? kNoValue : t.over("any.dim", bad, axis, true);
  const Value value = bad == kNoValue ? found : t.where(any_bad, kNan, found);
  const auto shaped = [&](Value v) { return t.reshape(v, e.result().shape); };
  if (whole) return {shaped(value)};
  Value here = place_in_order(t, x, found, axis, half);
  if (bad != kNoValue) here = t.where(any_bad, bad, here);
  const Value place = e.call("aten.argmax", {t.cast(here, Dtype::i64), axis, keeps_axes(e)});
  return {shaped(value), place};
}

Value nansum(Emitter& e) {
  Terms t(e);
  const Value own = e.tensor("self");
  const Value x = is_floating(e.dtype(own)) ? t.where(t.of("isnan", own), 0.0, own) : own;
  return e.call("aten.sum.dim_IntList", {x, e.arg("dim"), e.arg("keepdim")},
                {{"dtype", e.arg("dtype")}});
}

Value sum_all(Emitter& e) {
  return e.call("aten.sum.dim_IntList", {e.arg("self"), std::nullopt, false},
                {{"dtype", e.arg("dtype")}});
}

Value count_nonzero(Emitter& e) {
  Terms t(e);
  const Value truth = truth_of(t, e.tensor("self"));
  const auto axes = axes_of_call(e, e.rank(truth));
  return t.over("sum.dim_IntList", truth, axis_list(axes));
}

Value norm_along(Terms& t, Value x, const Norm& norm) {
  if (is_complex(t.e.dtype(x))) t.e.refuse("no rule for complex numbers");
  const Operand axes = axis_list(norm.axes);
  const auto sum = [&](Value v) { return t.over("sum.dim_IntList", v, axes, norm.keepdim); };
  if (norm.order == 0) return sum(t.cast(t.is("ne", x, 0), t.e.dtype(x)));
  if (norm.order == 2) return t.of("sqrt", sum(t.mul(x, x)));
  const Value size = t.of("abs", x);
  if (norm.order == 1) return sum(size);
  if (norm.order == kInfinity) return t.over("amax", size, axes, norm.keepdim);
  if (norm.order == -kInfinity) return t.over("amin", size, axes, norm.keepdim);
  const Value powers = t.e.call("aten.pow.Tensor_Scalar", {size, norm.order});
  return t.e.call("aten.pow.Tensor_Scalar", {sum(powers), 1 / norm.order});
}

Value norm(Emitter& e) {
  Terms t(e);
  if (is_complex(e.dtype(e.tensor("self")))) e.refuse("no rule for complex numbers");
  const std::string_view order = has_parameter(e, "ord") ? "ord" : "p";
  const Value x = t.in("self");
  return t.done(norm_along(t, x,
                           {.order = e.has(order) ? e.real_number(order) : 2,
                            .axes = axes_of_call(e, e.rank(x)),
                            .keepdim = keeps_axes(e)}));
}

Value dist(Emitter& e) {
  Terms t(e);
  const Value away = t.sub(t.in("self"), t.in("other"));
  return t.done(
      norm_along(t, away, {.order = e.real_number("p"), .axes = axes_of_call(e, e.rank(away))}));
}

}  // namespace modelport::ops::parts
