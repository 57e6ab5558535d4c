// Axes moved, and tensors cut along them.
#include <algorithm>

#include "ops/decompositions/pieces.h"
#include "ops/decompositions/shape.h"

namespace modelport::ops::parts {
namespace {

/// The order in which axis source[i] stands at target[i], and the others where there is room.
Axes moved(std::int64_t rank, const Axes& source, const Axes& target) {
  Axes order(at(rank), -1);
  for (std::size_t i = 0; i < source.size(); ++i) order[at(target[i])] = source[i];
  std::int64_t next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::ranges::find(source, next) != source.end()) ++next;
    axis = next++;
  }
  return order;
}

}  // namespace

Value channel_shuffle(Emitter& e) {
  const Value x = e.tensor("self");
  const Shape shape = e.shape(x);
  const Int groups = e.call().integer("groups");
  Shape cut = shape;
  cut[1] = divided(e.call(), shape[1], groups);
  cut.insert(cut.begin() + 1, groups);
  return viewed(e, e.call("aten.transpose.int", {viewed(e, x, cut), 1, 2}), shape);
}

Value flip_left_right(Emitter& e) { return e.call("aten.flip", {e.arg("self"), {1}}); }
Value flip_up_down(Emitter& e) { return e.call("aten.flip", {e.arg("self"), {0}}); }
Value matrix_adjoint(Emitter& e) {
  const Value x = transposed(e, e.tensor("self"));
  return is_complex(e.dtype(x)) ? e.call("aten.conj_physical", {x}) : x;
}

Value matrix_transpose(Emitter& e) { return transposed(e, e.tensor("self")); }

Value move_axis(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t rank = e.rank(x);
  return permuted(e, x, moved(rank, {e.axis("source", rank)}, {e.axis("destination", rank)}));
}

Value move_axes(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t rank = e.rank(x);
  return permuted(
      e, x,
      moved(rank, axis_list(e.call(), "source", rank), axis_list(e.call(), "destination", rank)));
}

Value reverse_axes(Emitter& e) {
  const Value x = e.tensor("self");
  Axes order = axes_in_order(e.rank(x));
  std::ranges::reverse(order);
  return permuted(e, x, order);
}

Value rotate_quarters(Emitter& e) {
  const Value x = e.tensor("self");
  const Axes axes = axis_list(e.call(), "dims", e.rank(x));
  const std::int64_t quarters = ((e.call().number("k") % 4) + 4) % 4;
  if (quarters == 0) return x;
  if (quarters == 2) return e.call("aten.flip", {x, emit::int_list(axes)});
  const Value flipped = e.call("aten.flip", {x, {quarters == 1 ? axes[1] : axes[0]}});
  return e.call("aten.transpose.int", {flipped, axes[0], axes[1]});
}

Value swap_axes(Emitter& e) {
  const bool by_axis = schema_of(e.call().op()).find("axis0") != nullptr;
  return e.call("aten.transpose.int", {e.arg("self"), e.arg(by_axis ? "axis0" : "dim0"),
                                       e.arg(by_axis ? "axis1" : "dim1")});
}

Value expand_to_result(Emitter& e) { return expanded(e, e.tensor("self"), e.result().shape); }

Values expand_each(Emitter& e) {
  Values results;
  for (const Value x : e.ins("tensors")) results.push_back(expanded(e, x, e.result().shape));
  return results;
}

Value as_strided_scatter(Emitter& e) {
  const Value x = e.tensor("self");
  const Shape sizes = e.call().ints("size");
  const Shape strides = e.call().ints("stride");
  Value places =
      e.call("aten.scalar_tensor", {e.call().optional_integer("storage_offset").value_or(Int(0))},
             {{"dtype", Dtype::i64}});
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Value steps = e.call("aten.mul.Scalar", {counted(e, sizes[i]), strides[i]});
    places = add(e, e.call("aten.unsqueeze", {places, -1}), steps);
  }
  const Int count = numel(sizes);
  const Value flat = viewed(e, x, {numel(e.shape(x))});
  const Value written = e.call("aten.scatter.src", {flat, 0, viewed(e, places, {count}),
                                                    viewed(e, e.tensor("src"), {count})});
  return viewed(e, written, e.shape(x));
}

Value linalg_diagonal(Emitter& e) {
  return e.call("aten.diagonal", {e.arg("A"), e.arg("offset"), e.arg("dim1"), e.arg("dim2")});
}

Values split_as_results(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  Shape sizes;
  for (std::size_t i = 0; i < e.result_count(); ++i) sizes.push_back(e.result(i).shape[at(axis)]);
  if (sizes.size() == 1) return {x};
  if (schema_of(e.call().op()).find("indices") == nullptr)
    return e.calls("aten.split_with_sizes", {x, sizes, axis});
  // Places may overlap or lie behind the end.
  Values results;
  Int start = 0;
  const Shape places = e.call().ints("indices");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Int end = i < places.size() ? places[i] : e.shape(x)[at(axis)];
    results.push_back(sliced(e, x, axis, start, end));
    start = end;
  }
  return results;
}

/// The runtime's own kernel for it wants results of the right size before it runs.
Values unbind(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  Values results{x};
  if (e.result_count() > 1)
    results = e.calls("aten.split_with_sizes", {x, Shape(e.result_count(), Int(1)), axis});
  for (Value& one : results) one = viewed(e, one, e.result().shape);
  return results;
}

Value narrow(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  Int start = e.call().integer("start");
  if (start.constant() && *start.constant() < 0) start = start + e.shape(x)[at(axis)];
  return sliced(e, x, axis, start, start + e.call().integer("length"));
}

namespace {

Value shifted_by_half(Emitter& e, bool back) {
  const Value x = e.tensor("self");
  const Axes axes = e.has("dim") ? axis_list(e.call(), "dim", e.rank(x)) : axes_in_order(e.rank(x));
  Shape shifts;
  for (const std::int64_t axis : axes) {
    const Int size = e.shape(x)[at(axis)];
    shifts.push_back(shape::floor_div(back ? size + 1 : size, 2));
  }
  return e.call("aten.roll", {x, shifts, emit::int_list(axes)});
}

}  // namespace

Value fftshift(Emitter& e) { return shifted_by_half(e, false); }
Value ifftshift(Emitter& e) { return shifted_by_half(e, true); }

}  // namespace modelport::ops::parts
