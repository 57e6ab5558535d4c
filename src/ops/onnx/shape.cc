// Views become Reshape, Expand, Squeeze and Unsqueeze; orders become Transpose and Slice.
#include "ops/onnx/shape.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

Values same(Lower& l) { return {l.in("self")}; }
Values to_result_shape(Lower& l) { return {l.reshape(l.in("self"), l.result().shape)}; }
Values expand(Lower& l) { return {l.expand(l.in("self"), l.result().shape)}; }

Values broadcast_tensors(Lower& l) {
  Values results;
  for (const Value x : l.ins("tensors")) results.push_back(l.expand(x, l.result().shape));
  return results;
}

namespace {

Values squeeze_axes(Lower& l, const std::vector<std::int64_t>& asked) {
  const Value x = l.in("self");
  std::vector<std::int64_t> dropped;
  for (std::int64_t axis = 0; axis < l.rank(x); ++axis) {
    if (std::ranges::find(asked, axis) != asked.end() && l.shape(x)[at(axis)] == Int(1))
      dropped.push_back(axis);
  }
  const std::size_t left = l.shape(x).size() - dropped.size();
  if (left != l.result().shape.size()) return to_result_shape(l);
  return {l.squeeze(x, dropped)};
}

}  // namespace

Values squeeze(Lower& l) {
  std::vector<std::int64_t> axes(l.call().shape("self").size());
  std::iota(axes.begin(), axes.end(), 0);
  return squeeze_axes(l, axes);
}

Values squeeze_listed(Lower& l) {
  return squeeze_axes(l, axis_list(l.call(), "dim", l.call().rank("self")));
}

Values unsqueeze(Lower& l) {
  const Value x = l.in("self");
  return {l.unsqueeze(x, {l.axis("dim", l.rank(x) + 1)})};
}

Values view_as_real(Lower& l) { return {l.as_pairs(l.in("self"))}; }
Values view_as_complex(Lower& l) { return {l.from_pairs(l.in("self"))}; }

Values permute(Lower& l) {
  const Value x = l.in("self");
  return {l.transpose(x, axis_list(l.call(), "dims", l.rank(x)))};
}

namespace {

Values swapped(Lower& l, std::string_view first, std::string_view second) {
  const Value x = l.in("self");
  if (l.rank(x) == 0) return {x};
  return {l.swap_axes(x, l.axis(first, l.rank(x)), l.axis(second, l.rank(x)))};
}

}  // namespace

Values transpose(Lower& l) { return swapped(l, "dim0", "dim1"); }
Values swapaxes(Lower& l) { return swapped(l, "axis0", "axis1"); }

Values matrix_transpose(Lower& l) {
  const Value x = l.in("self");
  return {l.rank(x) < 2 ? x : l.swap_axes(x, l.rank(x) - 2, l.rank(x) - 1)};
}

Values matrix_adjoint(Lower& l) {
  const Value x = matrix_transpose(l)[0];
  if (!is_complex(l.dtype(x))) return {x};
  return {l.make_complex(l.real_part(x), l.unary("Neg", l.imaginary_part(x)))};
}

Values reverse_axes(Lower& l) {
  const Value x = l.in("self");
  std::vector<std::int64_t> order(l.shape(x).size());
  std::iota(order.rbegin(), order.rend(), 0);
  return {l.transpose(x, order)};
}

Values movedim(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t rank = l.rank(x);
  if (rank == 0) return {x};
  const std::vector<std::int64_t> sources = axis_list(l.call(), "source", rank);
  const std::vector<std::int64_t> targets = axis_list(l.call(), "destination", rank);
  std::vector<std::int64_t> order(at(rank), -1);
  for (std::size_t i = 0; i < sources.size(); ++i) order[at(targets[i])] = sources[i];
  std::int64_t next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::ranges::find(sources, next) != sources.end()) ++next;
    axis = next++;
  }
  return {l.transpose(x, order)};
}

Values channel_shuffle(Lower& l) {
  const Value x = l.in("self");
  const Shape& shape = l.shape(x);
  const Int groups = l.call().integer("groups");
  const Int each = divided(l.call(), shape[1], groups);
  const Shape rest = from(shape, 2);
  const Value split = l.reshape(x, joined({shape[0], groups, each}, rest));
  return {l.reshape(l.swap_axes(split, 1, 2), shape)};
}

Values flip(Lower& l) {
  const Value x = l.in("self");
  return {reversed(l, x, axis_list(l.call(), "dims", l.rank(x)))};
}
Values fliplr(Lower& l) { return {reversed(l, l.in("self"), {1})}; }
Values flipud(Lower& l) { return {reversed(l, l.in("self"), {0})}; }

namespace {

Value rolled(Lower& l, Value x, std::int64_t axis, const Int& shift) {
  const Int n = l.shape(x)[at(axis)];
  if (n == Int(0)) return x;
  Int places = shift;
  // A shift may go round more than once, unless the axis is known to be long enough.
  const auto fixed = shift.constant();
  const bool once = fixed && !n.is_constant() && l.surely_at_least(n, std::abs(*fixed));
  if (!once) places = shape::mod(shift, l.surely_at_least(n, 1) ? n : shape::max(n, 1));
  if (places == Int(0)) return x;
  // The end comes to the front. A constant place counts from the end that makes it constant.
  const bool forward = places.is_constant() && *places.constant() > 0;
  const Int cut_at = forward || places.is_constant() ? -places : n - places;
  const Int length = forward || !places.is_constant() ? places : n + places;
  return l.concat(
      {cut(l, x, axis, cut_at, kToTheEnd, length), cut(l, x, axis, 0, cut_at, n - length)}, axis);
}

}  // namespace

Values roll(Lower& l) {
  const Value x = l.in("self");
  const std::vector<Int> shifts = l.call().ints("shifts");
  const std::vector<std::int64_t> axes = axis_list(l.call(), "dims", l.rank(x));
  if (l.rank(x) == 0) return {x};
  if (axes.empty()) return {l.reshape(rolled(l, flat(l, x), 0, shifts[0]), l.shape(x))};
  Value result = x;
  for (std::size_t i = 0; i < axes.size(); ++i) result = rolled(l, result, axes[i], shifts[i]);
  return {result};
}

Values rot90(Lower& l) {
  const Value x = l.in("self");
  const std::vector<std::int64_t> axes = axis_list(l.call(), "dims", l.rank(x));
  const std::int64_t turns = ((l.call().number("k") % 4) + 4) % 4;
  if (turns == 0) return {x};
  if (turns == 2) return {reversed(l, x, axes)};
  const Value turned = reversed(l, x, {turns == 1 ? axes[1] : axes[0]});
  return {l.swap_axes(turned, axes[0], axes[1])};
}

}  // namespace modelport::ops::onnx
