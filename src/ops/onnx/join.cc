// Concat on operands of one type and rank, Tile and Expand.
#include "ops/onnx/join.h"

#include <algorithm>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

Value joined_along(Lower& l, const Values& parts, std::int64_t axis) {
  const std::size_t rank = l.result().shape.size();
  Values kept;
  for (const Value part : parts) {
    const Shape& shape = l.shape(part);
    if (shape.size() < rank) continue;  // an empty 1-d tensor goes with tensors of any rank
    if (axis < l.rank(part) && shape[at(axis)] == Int(0) && parts.size() > 1) continue;
    kept.push_back(l.cast(part, l.result().dtype));
  }
  if (kept.empty()) return l.cast(parts.back(), l.result().dtype);
  return l.concat(kept, axis);
}

using Reshaped = Shape (*)(const Shape& shape);

Value joined_as(Lower& l, std::int64_t axis, Reshaped reshaped) {
  Values parts;
  for (const Value x : l.ins("tensors")) parts.push_back(l.reshape(x, reshaped(l.shape(x))));
  return joined_along(l, parts, axis);
}

}  // namespace

Values cat(Lower& l) {
  const auto rank = static_cast<std::int64_t>(l.result().shape.size());
  return {joined_along(l, l.ins("tensors"), l.axis("dim", rank))};
}

Values stack(Lower& l) {
  const auto rank = static_cast<std::int64_t>(l.result().shape.size());
  const std::int64_t axis = l.axis("dim", rank);
  Values parts;
  for (const Value x : l.ins("tensors"))
    parts.push_back(l.unsqueeze(l.cast(x, l.result().dtype), {axis}));
  return {l.concat(parts, axis)};
}

Values hstack(Lower& l) {
  const bool flat = l.result().shape.size() == 1;
  return {joined_as(l, flat ? 0 : 1, [](const Shape& s) { return s.empty() ? Shape{1} : s; })};
}

Values vstack(Lower& l) {
  return {joined_as(l, 0, [](const Shape& s) {
    if (s.empty()) return Shape{1, 1};
    return s.size() == 1 ? Shape{1, s[0]} : s;
  })};
}

Values dstack(Lower& l) {
  return {joined_as(l, 2, [](const Shape& s) {
    if (s.empty()) return Shape{1, 1, 1};
    if (s.size() == 1) return Shape{1, s[0], 1};
    return s.size() == 2 ? joined(s, {1}) : s;
  })};
}

Values column_stack(Lower& l) {
  return {joined_as(l, 1, [](const Shape& s) {
    if (s.empty()) return Shape{1, 1};
    return s.size() == 1 ? Shape{s[0], 1} : s;
  })};
}

Values block_diag(Lower& l) {
  const Dtype dtype = l.result().dtype;
  const Int columns = l.result().shape[1];
  Values rows;
  Int left = 0;
  for (const Value x : l.ins("tensors")) {
    const Shape& shape = l.shape(x);
    const Shape block = shape.empty()       ? Shape{1, 1}
                        : shape.size() == 1 ? Shape{1, shape[0]}
                                            : shape;
    const Value matrix = l.cast(l.reshape(x, block), dtype);
    const Int right = columns - left - block[1];
    rows.push_back(bordered(l, matrix, {0, left}, {0, right}, l.number(0.0, dtype)));
    left += block[1];
  }
  return {l.concat(rows, 0)};
}

namespace {

/// Each operand along an axis of its own.
Values grid_of(Lower& l, const Values& operands, const Shape& grid, bool xy) {
  Values results;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t axis = xy && i < 2 && operands.size() >= 2 ? 1 - i : i;
    Shape along(grid.size(), 1);
    along[axis] = grid[axis];
    results.push_back(l.expand(l.reshape(operands[i], along), grid));
  }
  return results;
}

}  // namespace

Values meshgrid(Lower& l) {
  const bool xy =
      l.call().op().name == "aten.meshgrid.indexing" && l.call().string("indexing") == "xy";
  return grid_of(l, l.ins("tensors"), l.result().shape, xy);
}

Values cartesian_prod(Lower& l) {
  const Values operands = l.ins("tensors");
  if (operands.size() == 1) return {operands[0]};
  Shape grid;
  for (const Value x : operands) grid.push_back(l.shape(x)[0]);
  const Int rows = l.result().shape[0];
  Values columns;
  for (const Value x : grid_of(l, operands, grid, false))
    columns.push_back(l.reshape(x, {rows, 1}));
  return {l.concat(columns, 1)};
}

Values pad_sequence(Lower& l) {
  const bool batch_first = l.call().flag("batch_first");
  const bool left = l.call().string("padding_side") == "left";
  const Int longest = l.result().shape[batch_first ? 1 : 0];
  const std::int64_t axis = batch_first ? 0 : 1;
  const Value value = l.in("padding_value", l.result().dtype);
  Values parts;
  for (const Value x : l.ins("sequences")) {
    const Shape none(l.shape(x).size(), 0);
    const Shape added = with_size(none, 0, longest - l.shape(x)[0]);
    const Value padded = bordered(l, x, left ? added : none, left ? none : added, value);
    parts.push_back(l.unsqueeze(padded, {axis}));
  }
  return {l.concat(parts, axis)};
}

namespace {

Value tiled(Lower& l, Value x, const Shape& counts) {
  if (is_complex(l.dtype(x))) return l.from_pairs(tiled(l, l.as_pairs(x), joined(counts, {1})));
  if (l.dtype(x) == Dtype::bf16)
    return l.cast(tiled(l, l.cast(x, Dtype::f32), counts), Dtype::bf16);
  const auto added = static_cast<std::int64_t>(counts.size()) - l.rank(x);
  Shape result = counts;
  bool only_ones = true;  // whether every axis that is repeated has size 1
  bool unchanged = true;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i < at(added)) continue;
    const Int& size = l.shape(x)[i - at(added)];
    result[i] *= size;
    only_ones = only_ones && (size == Int(1) || counts[i] == Int(1));
    unchanged = unchanged && counts[i] == Int(1);
  }
  if (unchanged && added == 0) return x;
  if (only_ones) return l.expand(x, result);
  std::vector<std::int64_t> front;
  for (std::int64_t i = 0; i < added; ++i) front.push_back(i);
  return l.emit("Tile", {l.unsqueeze(x, front), l.sizes(counts)}, {},
                {l.dtype(x), std::move(result)});
}

}  // namespace

Values repeat(Lower& l) { return {tiled(l, l.in("self"), l.call().ints("repeats"))}; }

Values tile(Lower& l) {
  const Value x = l.in("self");
  std::vector<Int> counts = l.call().ints("dims");
  while (counts.size() < l.shape(x).size()) counts.insert(counts.begin(), 1);
  return {tiled(l, x, counts)};
}

Values repeat_interleave(Lower& l) {
  Value x = l.in("self");
  const std::optional<std::int64_t> given = optional_axis(l.call(), "dim", l.rank(x));
  if (!given || l.rank(x) == 0) x = flat(l, x);
  const std::int64_t axis = given.value_or(0);
  const Value wider = l.unsqueeze(x, {axis + 1});
  const Int repeats = l.call().integer("repeats");
  return {
      l.reshape(l.expand(wider, with_size(l.shape(wider), axis + 1, repeats)), l.result().shape)};
}

namespace {

/// 0 repeats[0] times, then 1 repeats[1] times, ...: a mark where each number starts, summed up.
Value repeated_positions(Lower& l, Value repeats, const Int& total) {
  const Value ends = running_sum(l, repeats, 0);
  const Value starts = l.sub(ends, repeats);
  const Value sum = l.reduce("ReduceSum", repeats, {0}, true);
  const Value length = l.add(sum, l.ints({1}));
  const Value blank = l.emit("Expand", {l.number(std::int64_t{0}, Dtype::i64), length}, {},
                             {Dtype::i64, {total + 1}});
  const Value ones = l.expand(l.number(std::int64_t{1}, Dtype::i64), l.shape(repeats));
  const Value marks = scatter_elements(l, blank, starts, ones, 0, "add");
  const Value counted = l.sub(running_sum(l, marks, 0), l.number(std::int64_t{1}, Dtype::i64));
  return cut(l, counted, 0, 0, -1, total);
}

}  // namespace

Values repeat_interleave_counts(Lower& l) {
  const Value repeats = l.in("repeats");
  const Value found = repeated_positions(l, l.cast(repeats, Dtype::i64), l.result().shape[0]);
  return {l.cast(found, l.dtype(repeats))};
}

Values repeat_interleave_tensor(Lower& l) {
  Value x = l.in("self");
  const std::optional<std::int64_t> given = optional_axis(l.call(), "dim", l.rank(x));
  if (!given || l.rank(x) == 0) x = flat(l, x);
  const std::int64_t axis = given.value_or(0);
  const Int& size = l.shape(x)[at(axis)];
  Value repeats = flat(l, l.in("repeats", Dtype::i64));
  if (l.shape(repeats)[0] == Int(1)) repeats = l.expand(repeats, {size});
  const Value from = repeated_positions(l, repeats, l.result().shape[at(axis)]);
  return {l.gather(x, from, axis)};
}

}  // namespace modelport::ops::onnx
