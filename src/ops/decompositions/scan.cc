// Running results along an axis. The runtime has running sums only; for the rest every place looks
// at all places up to it, which takes the square of the axis in memory.
#include <limits>

#include "ops/decompositions/reduce.h"

namespace modelport::ops::parts {
namespace {

/// What each place sees: [..., n, ...] with a new last axis of the places up to it; beyond them is
/// `otherwise`.
struct Seen {
  Value elements;
  Value within;  // [n, 1, ..., n]
  std::int64_t last;
};

Seen seen_along(Terms& t, Value x, std::int64_t axis, const Operand& otherwise) {
  Emitter& e = t.e;
  const std::int64_t rank = e.rank(x);
  const Int n = e.shape(x)[static_cast<std::size_t>(axis)];
  const auto swapped = [&](Value v) {
    return axis == rank - 1 ? v : e.call("aten.transpose.int", {v, axis, rank - 1});
  };
  const Value moved = t.unsqueeze(swapped(x), rank - 1);
  const Value places = t.range(n);
  const Value within = t.is("le", t.reshape(places, {1, n}), t.reshape(places, {n, 1}));
  const Value all = t.where(within, moved, otherwise);
  Shape shape(static_cast<std::size_t>(rank) + 1, Int(1));
  shape[static_cast<std::size_t>(axis)] = n;
  shape.back() = n;
  return {swapped(all), t.reshape(within, shape), rank};
}

Values running_extreme(Emitter& e, std::string_view row, double beyond) {
  Terms t(e);
  const Value own = e.tensor("self");
  if (e.rank(own) == 0) return {own, t.filled({}, 0, Dtype::i64)};
  const std::int64_t axis = e.axis("dim", e.rank(own));
  const bool whole = !is_floating(e.dtype(own));
  const Value x = t.cast(own, whole ? Dtype::i64 : e.dtype(own));
  const Operand otherwise = !whole       ? Operand(beyond)
                            : beyond < 0 ? Operand(std::numeric_limits<std::int64_t>::min())
                                         : Operand(std::numeric_limits<std::int64_t>::max());
  const Seen seen = seen_along(t, x, axis, otherwise);
  const Value values = t.over(row, seen.elements, {seen.last});
  const Value equal = t.is("eq", seen.elements, t.unsqueeze(values, seen.last));
  // The latest of those that are equal; one that is no number stays the extreme from there on.
  const Value mine = t.both(equal, seen.within);
  const Value places = t.where(mine, t.range(e.shape(own)[static_cast<std::size_t>(axis)]), 0);
  return {t.done(values), t.over("amax", places, {seen.last})};
}

}  // namespace

Values cummax(Emitter& e) {
  return running_extreme(e, "amax", -std::numeric_limits<double>::infinity());
}
Values cummin(Emitter& e) {
  return running_extreme(e, "amin", std::numeric_limits<double>::infinity());
}

Value cumprod(Emitter& e) {
  Terms t(e);
  const Value x = t.done(e.tensor("self"));
  if (e.rank(x) == 0) return x;
  const Operand one = is_floating(e.dtype(x)) ? Operand(1.0) : Operand(1);
  const Seen seen = seen_along(t, x, e.axis("dim", e.rank(x)), one);
  return e.call("aten.prod.dim_int", {seen.elements, seen.last});
}

Value logcumsumexp(Emitter& e) {
  Terms t(e);
  const Value x = e.tensor("self");
  if (e.rank(x) == 0) return x;
  const Seen seen =
      seen_along(t, x, e.axis("dim", e.rank(x)), -std::numeric_limits<double>::infinity());
  return e.call("aten.logsumexp", {seen.elements, {seen.last}});
}

Value cumulative_trapezoid(Emitter& e) {
  Terms t(e);
  const Value y = t.in("y");
  const std::int64_t axis = e.axis("dim", e.rank(y));
  const Int n = e.shape(y)[static_cast<std::size_t>(axis)];
  const Value pairs = t.add(t.slice(y, axis, 1, n), t.slice(y, axis, 0, n - 1));
  const Value areas = t.mul(pairs, e.real_number("dx") / 2);
  return t.done(e.call("aten.cumsum", {areas, axis}));
}

}  // namespace modelport::ops::parts
