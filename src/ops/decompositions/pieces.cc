#include "ops/decompositions/pieces.h"

#include <numeric>

namespace modelport::ops::parts {

Value cast(Emitter& e, Value x, Dtype dtype) {
  return e.dtype(x) == dtype ? x : e.call("aten._to_copy", {x}, {{"dtype", dtype}});
}

Value viewed(Emitter& e, Value x, const Shape& shape) {
  return e.shape(x) == shape ? x : e.call("aten.view", {x, shape});
}

Value expanded(Emitter& e, Value x, const Shape& shape) {
  return e.shape(x) == shape ? x : e.call("aten.expand", {x, shape});
}

Value permuted(Emitter& e, Value x, const Axes& order) {
  return order == axes_in_order(e.rank(x)) ? x : e.call("aten.permute", {x, emit::int_list(order)});
}

Value transposed(Emitter& e, Value x) { return e.call("aten.transpose.int", {x, -2, -1}); }

Value with_axis_at(Emitter& e, Value x, std::int64_t axis) {
  return e.call("aten.unsqueeze", {x, axis});
}

Value sliced(Emitter& e, Value x, std::int64_t axis, const Int& start, const Int& end,
             const Int& step) {
  if (start == Int(0) && end == e.shape(x)[at(axis)] && step == Int(1)) return x;
  return e.call("aten.slice.Tensor", {x, axis, start, end, step});
}

Value selected(Emitter& e, Value x, std::int64_t axis, const Int& index) {
  return e.call("aten.select.int", {x, axis, index});
}

Value counted(Emitter& e, const Int& n, Dtype dtype) {
  return e.call("aten.arange", {n}, {{"dtype", dtype}});
}

Value filled(Emitter& e, const Shape& shape, double value, Dtype dtype) {
  if (is_floating(dtype)) return e.call("aten.full", {shape, value}, {{"dtype", dtype}});
  return e.call("aten.full", {shape, static_cast<std::int64_t>(value)}, {{"dtype", dtype}});
}

Value padded(Emitter& e, Value x, const Shape& pads, double value) {
  bool any = false;
  for (const Int& pad : pads) any = any || pad != Int(0);
  if (!any) return x;
  if (is_floating(e.dtype(x))) return e.call("aten.constant_pad_nd", {x, pads, value});
  return e.call("aten.constant_pad_nd", {x, pads, static_cast<std::int64_t>(value)});
}

Value cut_off(Emitter& e, Value x, Shape& pads) {
  const std::int64_t rank = e.rank(x);
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const auto lost = [](const Int& pad) {
      return pad.constant() && *pad.constant() < 0 ? -*pad.constant() : 0;
    };
    const std::int64_t before = lost(pads[2 * i]);
    const std::int64_t after = lost(pads[2 * i + 1]);
    const std::int64_t axis = rank - 1 - static_cast<std::int64_t>(i);
    x = sliced(e, x, axis, before, e.shape(x)[at(axis)] - after);
    if (before > 0) pads[2 * i] = 0;
    if (after > 0) pads[2 * i + 1] = 0;
  }
  return x;
}

Value sum_over(Emitter& e, Value x, const Axes& axes, bool keepdim) {
  if (axes.empty()) return x;
  return e.call("aten.sum.dim_IntList", {x, emit::int_list(axes), keepdim},
                {{"dtype", e.dtype(x)}});
}

Value add(Emitter& e, const Operand& a, const Operand& b) {
  return e.call("aten.add.Tensor", {a, b});
}

Value sub(Emitter& e, const Operand& a, const Operand& b) {
  return e.call("aten.sub.Tensor", {a, b});
}

Value mul(Emitter& e, const Operand& a, const Operand& b) {
  return e.call("aten.mul.Tensor", {a, b});
}

Value div(Emitter& e, const Operand& a, const Operand& b) {
  return e.call("aten.div.Tensor", {a, b});
}

Value where(Emitter& e, Value condition, const Operand& yes, const Operand& no) {
  return e.call("aten.where.self", {condition, yes, no});
}

Value scaled(Emitter& e, Value x, double factor) {
  if (factor == 1) return x;
  if (is_floating(e.dtype(x))) return e.call("aten.mul.Scalar", {x, factor});
  return e.call("aten.mul.Scalar", {x, static_cast<std::int64_t>(factor)});
}

Value compare(Emitter& e, std::string_view row, Value a, Value b) { return e.call(row, {a, b}); }

Value product(Emitter& e, Value a, Value b) {
  Shape left = e.shape(a);
  Shape right = e.shape(b);
  const bool is_row = left.size() == 1;
  const bool is_column = right.size() == 1;
  if (is_row) left.insert(left.begin(), 1);
  if (is_column) right.push_back(1);
  a = viewed(e, a, left);
  b = viewed(e, b, right);
  const Int rows = left[left.size() - 2];
  const Int inner = left.back();
  const Int columns = right.back();
  Shape result;
  Value y = kNoValue;
  if (right.size() == 2) {
    result = leading(left, static_cast<std::int64_t>(left.size()) - 1);
    y = e.call("aten.mm", {viewed(e, a, {numel(result), inner}), b});
  } else {
    result = broadcast(e.call(), leading(left, static_cast<std::int64_t>(left.size()) - 2),
                       leading(right, static_cast<std::int64_t>(right.size()) - 2));
    const Int count = numel(result);
    a = viewed(e, expanded(e, a, joined(result, {rows, inner})), {count, rows, inner});
    b = viewed(e, expanded(e, b, joined(result, {inner, columns})), {count, inner, columns});
    y = e.call("aten.bmm", {a, b});
    result.push_back(rows);
  }
  if (is_row) result.pop_back();
  if (!is_column) result.push_back(columns);
  return viewed(e, y, result);
}

std::int64_t known(Emitter& e, const Int& size, std::string_view why) {
  if (!size.constant()) e.refuse(why);
  return *size.constant();
}

Axes axes_in_order(std::int64_t rank) {
  Axes axes(at(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

}  // namespace modelport::ops::parts
