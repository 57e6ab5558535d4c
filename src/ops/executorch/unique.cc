// The runtime has no kernel for elements that differ: a run begins where one is not as the one
// before, and nonzero finds the places of those.
#include "ops/executorch/unique.h"

#include <algorithm>

#include "ops/decompositions/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::executorch {
namespace {

/// Of `n` rows: where runs of equal ones begin, and which run each row is in.
struct Runs {
  Value begins, number;
};

/// `rows` has two axes, the second one for what a row consists of.
Runs runs_of(Lower& l, Value rows, const Int& count) {
  const Int n = l.shape(rows)[0];
  const Value before =
      l.call("aten.cat", {Values{parts::sliced(l, rows, 0, 0, shape::min(n, Int(1))),
                                 parts::sliced(l, rows, 0, 0, n - shape::min(n, Int(1)))},
                          0});
  const Value differs = l.call(
      "aten.any.dim",
      {parts::compare(l, "aten.ne.Tensor", rows, parts::viewed(l, before, l.shape(rows))), 1});
  const Value first = l.call("aten.eq.Scalar", {parts::counted(l, n), 0});
  const Value begin = l.call("aten.logical_or", {differs, first});
  const Values places =
      l.node("et.aten.nonzero.out", {{"self", {begin}}}, {Dtype::i64, {count, Int(1)}});
  const Value number = l.call("aten.cumsum", {parts::cast(l, begin, Dtype::i64), 0});
  return {parts::viewed(l, places[0], {count}), l.call("aten.sub.Scalar", {number, 1})};
}

/// How many rows each run has.
Value lengths(Lower& l, const Runs& runs, const Int& count) {
  const Value none = parts::filled(l, {count}, 0, Dtype::i64);
  const Value ones = parts::filled(l, l.shape(runs.number), 1, Dtype::i64);
  return l.call("aten.scatter_add", {none, 0, runs.number, ones});
}

/// By a kernel that takes no rows at all as well.
Value rows_at(Lower& l, Value rows, Value places) {
  return l.call("aten.index.Tensor", {rows, Values{places}});
}

Value nothing(Lower& l) { return parts::filled(l, {Int(0)}, 0, Dtype::i64); }

/// Along an axis torch always gives places and counts; rows without the parameter do not ask.
bool wants(Lower& l, std::string_view result) {
  return schema_of(l.call().op()).find(result) != nullptr && l.call().flag(result);
}

}  // namespace

Values unique_consecutive(Lower& l) {
  Value x = l.tensor("self");
  const Shape whole = l.shape(x);
  const bool along = l.has("dim");
  if (!along) x = parts::viewed(l, x, {numel(whole)});
  const std::int64_t axis = along ? l.axis("dim", l.rank(x)) : 0;
  const Int count = l.result().shape[parts::at(axis)];
  parts::Axes order = parts::axes_in_order(l.rank(x));
  std::rotate(order.begin(), order.begin() + axis, order.begin() + axis + 1);
  const Int n = l.shape(x)[parts::at(axis)];
  const Value moved = along ? parts::permuted(l, x, order) : x;
  Shape rest = l.shape(moved);
  rest.erase(rest.begin());
  const Runs runs = runs_of(l, parts::viewed(l, moved, {n, numel(rest)}), count);
  Value values = rows_at(l, moved, runs.begins);
  if (along) {
    parts::Axes back = parts::axes_in_order(l.rank(x));
    std::rotate(back.begin(), back.begin() + 1, back.begin() + axis + 1);
    values = parts::permuted(l, values, back);
  }
  const bool always = l.call().op().name == "aten.unique_dim_consecutive";
  const bool inverse = always || wants(l, "return_inverse");
  return {values, inverse ? parts::viewed(l, runs.number, along ? Shape{n} : whole) : nothing(l),
          always || wants(l, "return_counts") ? lengths(l, runs, count) : nothing(l)};
}

Values unique(Lower& l) {
  const Value x = l.tensor("self");
  const Int n = numel(l.shape(x));
  const Int count = l.result().shape[0];
  const Values sorted = l.calls("aten.sort", {parts::viewed(l, x, {n})});
  const Runs runs = runs_of(l, parts::viewed(l, sorted[0], {n, Int(1)}), count);
  Values results{rows_at(l, sorted[0], runs.begins), nothing(l)};
  if (wants(l, "return_inverse")) {
    const Value none = parts::filled(l, {n}, 0, Dtype::i64);
    const Value number = l.call("aten.scatter.src", {none, 0, sorted[1], runs.number});
    results[1] = parts::viewed(l, number, l.shape(x));
  }
  if (schema_of(l.call().op()).find("return_counts") != nullptr)
    results.push_back(wants(l, "return_counts") ? lengths(l, runs, count) : nothing(l));
  return results;
}

}  // namespace modelport::ops::executorch
