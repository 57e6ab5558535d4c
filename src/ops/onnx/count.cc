// NonZero, Compress, Unique and OneHot.
#include "ops/onnx/count.h"

#include <algorithm>
#include <array>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

Values nonzero(Lower& l) {
  const Value x = l.in("self");
  const Int& count = l.result().shape[0];
  if (l.rank(x) > 0) return {l.swap_axes(places(l, x, count), 0, 1)};
  // A number without axes has a place without coordinates.
  const Value found = l.swap_axes(places(l, l.reshape(x, {1}), count), 0, 1);
  return {cut(l, found, 1, 0, 0, 0)};
}

Values nonzero_lists(Lower& l) {
  Value x = l.in(l.call().op().name == "aten.where" ? "condition" : "self");
  if (l.rank(x) == 0) x = l.reshape(x, {1});
  const Value found = places(l, x, l.result().shape[0]);
  if (l.rank(x) == 1) return {l.squeeze(found, {0})};
  Values lists;
  for (std::int64_t i = 0; i < l.rank(x); ++i)
    lists.push_back(l.gather(found, l.number(i, Dtype::i64), 0));
  return lists;
}

Values nonzero_static(Lower& l) {
  const Value x = l.in("self");
  if (l.rank(x) == 0) l.refuse("nonzero_static of a tensor without axes");
  const Shape& shape = l.result().shape;
  const Int count = l.call().dims().fresh("picked", 1, {0, shape::Range::kUnbounded});
  const Value found = l.swap_axes(places(l, x, count), 0, 1);
  const Value fill = l.filled(l.in("fill_value", Dtype::i64), shape);
  return {cut(l, l.concat({found, fill}, 0), 0, 0, shape[0], shape[0])};
}

namespace {

/// The elements along the first axis for which the mask holds.
Value kept(Lower& l, Value x, Value mask, std::int64_t axis, const Int& count) {
  if (is_complex(l.dtype(x))) return l.from_pairs(kept(l, l.as_pairs(x), mask, axis, count));
  if (l.dtype(x) == Dtype::bf16)
    return l.cast(kept(l, l.cast(x, Dtype::f32), mask, axis, count), Dtype::bf16);
  return l.emit("Compress", {x, mask}, {{"axis", {Int(axis)}}},
                {l.dtype(x), with_size(l.shape(x), axis, count)});
}

}  // namespace

Values masked_select(Lower& l) {
  const Value x = l.in("self");
  const Value mask = l.in("mask", Dtype::boolean);
  const Shape shape = l.broadcast_shape(l.shape(x), l.shape(mask));
  const Value all = flat(l, l.expand(x, shape));
  return {kept(l, all, flat(l, l.expand(mask, shape)), 0, l.result().shape[0])};
}

namespace {

Value none_asked(Lower& l) { return l.constant_ints(Dtype::i64, {0}, {}); }

/// Sorted values, the place of each element among them, and how often each occurs.
Values uniques(Lower& l, Value x, std::optional<std::int64_t> axis) {
  const Dtype own = l.dtype(x);
  constexpr std::array kCompared{Dtype::f32, Dtype::f64, Dtype::i64, Dtype::i8};
  const bool compared = std::ranges::find(kCompared, own) != kCompared.end();
  const Dtype wide = compared ? own : is_floating(own) ? Dtype::f32 : Dtype::i64;
  Attributes attributes{{"sorted", {Int(1)}}};
  if (axis) attributes.push_back({"axis", {Int(*axis)}});
  const Shape& values = l.result().shape;
  const Int& count = values[at(axis.value_or(0))];
  const Int elements = axis ? l.shape(x)[at(*axis)] : numel(l.shape(x));
  const Values found = l.emit_many(
      "Unique", {l.cast(x, wide)}, attributes,
      {{wide, values}, {Dtype::i64, {count}}, {Dtype::i64, {elements}}, {Dtype::i64, {count}}});
  return {l.cast(found[0], own), found[2], found[3]};
}

}  // namespace

Values unique(Lower& l) {
  const Value x = l.in("self");
  const Values found = uniques(l, x, std::nullopt);
  Values results{found[0]};
  results.push_back(l.call().flag("return_inverse") ? l.reshape(found[1], l.shape(x))
                                                    : none_asked(l));
  if (l.result_count() == 2) return results;
  results.push_back(l.call().flag("return_counts") ? found[2] : none_asked(l));
  return results;
}

Values unique_along(Lower& l) {
  const Value x = l.in("self");
  return uniques(l, x, l.axis("dim", l.rank(x)));
}

Values unique_consecutive(Lower& l) {
  Value x = l.in("self");
  const std::optional<std::int64_t> given = optional_axis(l.call(), "dim", l.rank(x));
  const std::int64_t axis = given.value_or(0);
  if (!given) x = flat(l, x);
  const Int size = l.shape(x)[at(axis)];
  const Int& count = l.result().shape[at(axis)];
  // An element starts a run where it differs from the one before it; the first one always does.
  const Value before = l.concat({cut(l, x, axis, 0, 1, 1), cut(l, x, axis, 0, -1, size - 1)}, axis);
  Value differs = l.logical_not(l.compare("Equal", x, before));
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < l.rank(x); ++i) {
    if (i != axis) others.push_back(i);
  }
  if (!others.empty()) {
    const Value sum = l.reduce("ReduceSum", l.cast(differs, Dtype::i32), others, false);
    differs = l.cast(sum, Dtype::boolean);
  }
  const Value position = lattice(l, {size}, {1});
  const Value first = l.compare("Equal", position, l.number(std::int64_t{0}, Dtype::i64));
  const Value starts = l.emit("Or", {differs, first}, {}, {Dtype::boolean, {size}});
  const bool always = l.call().op().name == "aten.unique_dim_consecutive";
  Values results{kept(l, x, starts, axis, count), none_asked(l), none_asked(l)};
  if (always || l.call().flag("return_inverse")) {
    const Value run = running_sum(l, l.cast(starts, Dtype::i64), 0);
    const Value inverse = l.sub(run, l.number(std::int64_t{1}, Dtype::i64));
    results[1] = l.reshape(inverse, l.result(1).shape);
  }
  if (always || l.call().flag("return_counts")) {
    const Value from = l.squeeze(places(l, starts, count), {0});
    const Value to = l.concat({cut(l, from, 0, 1, kToTheEnd, count - 1), l.size(size)}, 0);
    results[2] = l.sub(to, from);
  }
  return results;
}

Values one_hot(Lower& l) {
  const Value x = l.in("self");
  const Int& classes = l.result().shape.back();
  Value depth = kNoValue;
  if (classes.is_constant()) {
    depth = l.number(*classes.constant(), Dtype::i64);
  } else {
    std::vector<std::int64_t> axes;
    for (std::int64_t i = 0; i < l.rank(x); ++i) axes.push_back(i);
    depth = l.add(l.reduce("ReduceMax", x, axes, false), l.number(std::int64_t{1}, Dtype::i64));
  }
  // OneHot asks for an axis.
  const Value listed = l.rank(x) == 0 ? l.reshape(x, {1}) : x;
  const Value hot = l.emit("OneHot", {listed, depth, l.ints({0, 1})}, {{"axis", {Int(-1)}}},
                           {Dtype::i64, joined(l.shape(listed), {classes})});
  return {l.reshape(hot, l.result().shape)};
}

Values item(Lower& l) { return {l.reshape(l.in("self"), {})}; }

}  // namespace modelport::ops::onnx
