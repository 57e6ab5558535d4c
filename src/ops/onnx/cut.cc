// Slice clamps its bounds as Python does, Split takes sizes, and what is neither is gathered.
#include "ops/onnx/cut.h"

#include <algorithm>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

Values slice(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Int start = l.call().optional_integer("start").value_or(0);
  const Int end = l.call().optional_integer("end").value_or(kToTheEnd);
  return {cut(l, x, axis, start, end, l.result().shape[at(axis)], l.call().integer("step"))};
}

namespace {

/// A position that counts from the end where it is negative, as one that counts from the start.
Int from_start(Lower& l, const Int& position, const Int& size) {
  if (l.surely_at_least(position, 0)) return position;
  if (l.surely_at_least(-position, 1)) return position + size;
  return shape::select(shape::Bool::compare(shape::Compare::lt, position, 0), position + size,
                       position);
}

}  // namespace

Values narrow(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Int length = l.call().integer("length");
  const Int start = l.call().integer("start");
  if (start.constant().value_or(0) < 0) {  // what ends at the end has no end
    const Int end = start + length;
    if (end == Int(0)) return {cut(l, x, axis, start, kToTheEnd, length)};
    if (end.constant().value_or(0) < 0) return {cut(l, x, axis, start, end, length)};
  }
  const Int first = from_start(l, start, l.shape(x)[at(axis)]);
  return {cut(l, x, axis, first, first + length, length)};
}

Values narrow_at_tensor(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Value start = l.reshape(l.in("start", Dtype::i64), {1});
  // Negative positions are as good as others to Gather.
  return {l.gather(x, l.add(lattice(l, {l.call().integer("length")}, {1}), start), axis)};
}

Values select(Lower& l) {
  const Value x = l.in("self");
  return {l.gather(x, l.scalar(l.call().integer("index")), l.axis("dim", l.rank(x)))};
}

Values split(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const std::size_t count = l.result_count();
  if (count == 1) return {x};
  if (is_complex(l.dtype(x))) {
    Values parts;
    Int start = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Int& size = l.result(i).shape[at(axis)];
      parts.push_back(l.slice(x, axis, start, start + size));
      start += size;
    }
    return parts;
  }
  Shape sizes;
  std::vector<ir::TensorType> types;
  for (std::size_t i = 0; i < count; ++i) {
    sizes.push_back(l.result(i).shape[at(axis)]);
    types.push_back(l.result(i));
  }
  const bool equal = std::ranges::all_of(sizes, [&](const Int& size) { return size == sizes[0]; });
  Attributes attributes{{"axis", {Int(axis)}}};
  if (!equal || sizes[0] == Int(0))
    return l.emit_many("Split", {x, l.sizes(sizes)}, attributes, types);
  // Equal parts need no sizes.
  if (l.opset() >= 18)
    attributes.push_back({"num_outputs", {Int(static_cast<std::int64_t>(count))}});
  return l.emit_many("Split", {x}, attributes, types);
}

Values split_at(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  // The parts overlap where an index is less than the one before it.
  std::vector<Int> bounds = l.call().ints("indices");
  bounds.insert(bounds.begin(), 0);
  bounds.push_back(kToTheEnd);
  Values parts;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    parts.push_back(cut(l, x, axis, bounds[i], bounds[i + 1], l.result(i).shape[at(axis)]));
  return parts;
}

Values unbind(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const auto count = static_cast<std::int64_t>(l.result_count());
  if (count == 1) return {l.squeeze(x, {axis})};
  Values parts;
  for (std::int64_t i = 0; i < count; ++i)
    parts.push_back(l.gather(x, l.number(i, Dtype::i64), axis));
  return parts;
}

Values unfold(Lower& l) {
  const Value x = l.in("self");
  const Int size = l.call().integer("size");
  const Int step = l.call().integer("step");
  if (l.rank(x) == 0) return {l.filled(x, l.result().shape)};
  const std::int64_t axis = l.axis("dimension", l.rank(x));
  const Int& windows = l.result().shape[at(axis)];
  Value cut_up = kNoValue;
  if (size == step) {
    const Value used = cut(l, x, axis, 0, windows * size, windows * size);
    Shape shape = with_size(l.shape(used), axis, windows);
    cut_up = l.reshape(used, with_axis(std::move(shape), axis + 1, size));
  } else {
    cut_up = l.gather(x, lattice(l, {windows, size}, {step, 1}), axis);
  }
  return {move_axis(l, cut_up, axis + 1, l.rank(x))};
}

namespace {

/// Axes a and b last and joined into one, along which the diagonal is a lattice.
struct Diagonal {
  Value joined;
  std::vector<std::int64_t> others;  // the axes that come first
  Int start, stride;
};

Diagonal diagonal_in(Lower& l, Value x) {
  const std::int64_t a = l.axis("dim1", l.rank(x));
  const std::int64_t b = l.axis("dim2", l.rank(x));
  Diagonal found;
  for (std::int64_t i = 0; i < l.rank(x); ++i) {
    if (i != a && i != b) found.others.push_back(i);
  }
  const Int rows = l.shape(x)[at(a)];
  const Int columns = l.shape(x)[at(b)];
  found.others.push_back(a);
  found.others.push_back(b);
  const Value last = axes_first(l, x, found.others);
  found.joined =
      l.reshape(last, ops::joined(leading(l.shape(last), l.rank(x) - 2), {rows * columns}));
  const std::int64_t offset = l.call().number("offset");
  found.start = offset >= 0 ? Int(offset) : -offset * columns;
  found.stride = columns + 1;
  return found;
}

}  // namespace

Values diagonal(Lower& l) {
  const Value x = l.in(l.call().op().name == "aten.linalg_diagonal" ? "A" : "self");
  const Diagonal found = diagonal_in(l, x);
  const Int& count = l.result().shape.back();
  return {l.gather(found.joined, lattice(l, {count}, {found.stride}, found.start), l.rank(x) - 2)};
}

Values as_strided(Lower& l) {
  const Value x = l.in("self");
  const Int offset = l.call().optional_integer("storage_offset").value_or(0);
  return {
      l.gather(flat(l, x), lattice(l, l.call().ints("size"), l.call().ints("stride"), offset), 0)};
}

Values as_strided_scatter(Lower& l) {
  const Value x = l.in("self");
  const Int offset = l.call().optional_integer("storage_offset").value_or(0);
  const Value where = lattice(l, l.call().ints("size"), l.call().ints("stride"), offset);
  const Value src = l.in("src", l.dtype(x));
  const Value written = scatter_rows(l, flat(l, x), l.unsqueeze(where, {l.rank(where)}), src);
  return {l.reshape(written, l.shape(x))};
}

Values diagonal_scatter(Lower& l) {
  const Value x = l.in("self");
  const Value src = l.in("src", l.dtype(x));
  const Diagonal found = diagonal_in(l, x);
  const Value where = lattice(l, {l.shape(src).back()}, {found.stride}, found.start);
  const Value written =
      scatter_elements(l, found.joined, l.expand(where, l.shape(src)), src, l.rank(x) - 2);
  Shape split;
  for (const std::int64_t axis : found.others) split.push_back(l.shape(x)[at(axis)]);
  return {axes_back(l, l.reshape(written, split), found.others)};
}

Values select_scatter(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Int size = l.shape(x)[at(axis)];
  const Value src = l.unsqueeze(l.in("src", l.dtype(x)), {axis});
  Int index = l.call().integer("index");
  if (!index.is_constant()) index = from_start(l, index, size);
  const bool from_end = index.constant().value_or(0) < 0;
  const Int before = from_end ? size + index : index;
  Values parts;
  if (!(index == Int(0)) && !(before == Int(0))) parts.push_back(cut(l, x, axis, 0, index, before));
  parts.push_back(src);
  if (!(index == Int(-1)) && !(before + 1 == size))
    parts.push_back(cut(l, x, axis, index + 1, kToTheEnd, size - before - 1));
  return {l.concat(parts, axis)};
}

namespace {

/// A bound of a Python slice as a number from 0 to `size`.
Int clamped(Lower& l, const Int& bound, const Int& size) {
  const Int position = from_start(l, bound, size);
  return clamp_below(l.call(), clamp_above(l.call(), position, size), 0);
}

}  // namespace

Values slice_scatter(Lower& l) {
  const Value x = l.in("self");
  const Value src = l.in("src", l.dtype(x));
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Int size = l.shape(x)[at(axis)];
  const Int count = l.shape(src)[at(axis)];
  const Int step = l.call().integer("step");
  const Int start = l.call().optional_integer("start").value_or(0);
  const Int end = l.call().optional_integer("end").value_or(kToTheEnd);
  if (count == size && start == Int(0)) return {src};
  if (!(step == Int(1))) {
    const Value where = lattice(l, {count}, {step}, clamped(l, start, size));
    Shape along(l.shape(x).size(), 1);
    along[at(axis)] = count;
    return {scatter_elements(l, x, l.expand(l.reshape(where, along), l.shape(src)), src, axis)};
  }
  const bool positive = l.surely_at_least(start, 0);
  const bool to_the_end = end == Int(kToTheEnd) || end == size;
  // Slice clamps by itself; only a tail after a start from the end needs the place computed.
  const Int first = positive ? start : clamped(l, start, size);
  Values parts;
  if (!(start == Int(0))) parts.push_back(cut(l, x, axis, 0, positive ? start : first, first));
  parts.push_back(src);
  if (!to_the_end) parts.push_back(cut(l, x, axis, first + count, kToTheEnd, size - first - count));
  return {l.concat(parts, axis)};
}

}  // namespace modelport::ops::onnx
