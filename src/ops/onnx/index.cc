// Advanced indexing: one Gather along the indexed axes joined into one, Compress for a mask, and
// ScatterND for what is written.
#include "ops/onnx/index.h"

#include <algorithm>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

bool is_mask(Lower& l, Value index) {
  return l.dtype(index) == Dtype::boolean || l.dtype(index) == Dtype::u8;
}

/// What `x[indices]` asks for: a list of positions for each indexed axis. A mask of k axes stands
/// for k lists.
struct Picks {
  std::vector<std::int64_t> axes;
  Values lists;
  Shape picked;        // what the lists broadcast to
  std::int64_t place;  // where the picked axes are in the result
  bool together = true;
};

/// The only index, if it is a mask.
struct OneMask {
  Value mask = kNoValue;
  std::int64_t axis = 0;
};

OneMask one_mask(Lower& l, const Values& indices) {
  OneMask found;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] == kNoValue) continue;
    if (found.mask != kNoValue || !is_mask(l, indices[i])) return {};
    found = {l.cast(indices[i], Dtype::boolean), static_cast<std::int64_t>(i)};
  }
  return found;
}

void add_mask(Lower& l, Picks& picks, Value mask, std::int64_t axis, const Int& count) {
  if (l.rank(mask) == 0) l.refuse("a mask without axes has no counterpart in ONNX");
  const Value found = places(l, mask, count);
  l.sources().learn_sizes(found, l.shape(found));
  for (std::int64_t i = 0; i < l.rank(mask); ++i) {
    picks.axes.push_back(axis + i);
    picks.lists.push_back(l.rank(mask) == 1 ? l.squeeze(found, {0})
                                            : l.gather(found, l.number(i, Dtype::i64), 0));
  }
}

/// `count`: how many elements the masks have.
Picks picks_of(Lower& l, const Values& indices, const Int& count) {
  Picks picks;
  std::int64_t axis = 0;
  for (const Value index : indices) {
    if (index == kNoValue) {
      ++axis;
    } else if (is_mask(l, index)) {
      add_mask(l, picks, l.cast(index, Dtype::boolean), axis, count);
      axis += l.rank(index);
    } else {
      picks.axes.push_back(axis++);
      picks.lists.push_back(positions(l, index));
    }
  }
  for (const Value list : picks.lists)
    picks.picked = l.broadcast_shape(picks.picked, l.shape(list));
  for (std::size_t i = 1; i < picks.axes.size(); ++i)
    picks.together = picks.together && picks.axes[i] == picks.axes[i - 1] + 1;
  picks.place = picks.together && !picks.axes.empty() ? picks.axes[0] : 0;
  return picks;
}

/// Positions along the indexed axes joined into one. Gather counts a negative one from the end, and
/// so a negative first position comes out right by itself.
Value joined_positions(Lower& l, const Picks& picks, const Shape& sizes) {
  Value position = l.cast(picks.lists[0], Dtype::i64);
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const auto size_for = [&](Value list) {
      return l.rank(list) == 0 ? l.scalar(sizes[i]) : l.size(sizes[i]);
    };
    Value next = l.cast(picks.lists[i], Dtype::i64);
    if (!surely_not_negative(l, next)) next = l.binary("Mod", next, size_for(next));
    position = l.add(l.mul(position, size_for(position)), next);
  }
  return position;
}

Value masked_slices(Lower& l, Value x, const OneMask& by, const Int& count) {
  if (is_complex(l.dtype(x))) return l.from_pairs(masked_slices(l, l.as_pairs(x), by, count));
  if (l.dtype(x) == Dtype::bf16)
    return l.cast(masked_slices(l, l.cast(x, Dtype::f32), by, count), Dtype::bf16);
  const std::int64_t covered = l.rank(by.mask);
  const Shape before = leading(l.shape(x), by.axis);
  const Shape after = from(l.shape(x), by.axis + covered);
  const Value joined_axes =
      covered == 1 ? x : l.reshape(x, joined(joined(before, {numel(l.shape(by.mask))}), after));
  return l.emit("Compress", {joined_axes, flat(l, by.mask)}, {{"axis", {Int(by.axis)}}},
                {l.dtype(x), joined(joined(before, {count}), after)});
}

}  // namespace

Values index(Lower& l) {
  Value x = l.in("self");
  const Values indices = l.ins("indices");
  if (const OneMask by = one_mask(l, indices); by.mask != kNoValue && l.rank(by.mask) > 0)
    return {masked_slices(l, x, by, l.result().shape[at(by.axis)])};
  const bool masked = std::ranges::any_of(
      indices, [&](Value index) { return index != kNoValue && is_mask(l, index); });
  const Int count = masked ? l.call().dims().fresh("picked", 1, {0, shape::Range::kUnbounded}) : 0;
  const Picks picks = picks_of(l, indices, count);
  if (picks.axes.empty()) return {x};
  if (picks.axes.size() == 1) return {l.gather(x, picks.lists[0], picks.axes[0])};
  if (!picks.together) x = axes_first(l, x, picks.axes);
  const auto taken = static_cast<std::int64_t>(picks.axes.size());
  const Shape sizes = leading(from(l.shape(x), picks.place), taken);
  const Value joined_axes =
      l.reshape(x, joined(joined(leading(l.shape(x), picks.place), {numel(sizes)}),
                          from(l.shape(x), picks.place + taken)));
  return {l.gather(joined_axes, joined_positions(l, picks, sizes), picks.place)};
}

namespace {

/// Values for `x[mask]`, lined up with x itself; kNoValue where each picked element has its own.
Value spread_over(Lower& l, Value x, const OneMask& by, Value values) {
  const std::int64_t after = l.rank(x) - by.axis - l.rank(by.mask);
  if (l.rank(values) <= after) return values;
  const std::int64_t picked = l.rank(values) - after - 1;
  if (!(l.shape(values)[at(picked)] == Int(1))) return kNoValue;
  if (l.rank(by.mask) == 1) return values;
  std::vector<std::int64_t> added;
  for (std::int64_t i = 1; i < l.rank(by.mask); ++i) added.push_back(picked + i);
  return l.unsqueeze(values, added);
}

Value put_by_mask(Lower& l, Value x, const OneMask& by, Value values, bool accumulate) {
  std::vector<std::int64_t> after;
  for (std::int64_t i = l.rank(by.mask); i < l.rank(x) - by.axis; ++i) after.push_back(i);
  const Value mask = l.unsqueeze(by.mask, after);
  if (!accumulate) return l.where(mask, values, x);
  if (is_complex(l.dtype(x)))
    return l.where(mask, l.from_pairs(l.add(l.as_pairs(x), l.as_pairs(values))), x);
  return l.where(mask, l.add(x, values), x);
}

Value put_at(Lower& l, Value x, const Picks& picks, Value values, bool accumulate) {
  Values columns;
  for (const Value list : picks.lists) {
    const Value all = l.expand(l.cast(list, Dtype::i64), picks.picked);
    columns.push_back(l.unsqueeze(all, {l.rank(all)}));
  }
  const auto picked = static_cast<std::int64_t>(picks.picked.size());
  const Value where = l.concat(columns, picked);
  const Value front = axes_first(l, x, picks.axes);
  const auto taken = static_cast<std::int64_t>(picks.axes.size());
  const Shape rest = from(l.shape(front), taken);
  // torch lines values up with the result of `x[indices]`; ScatterND has the picked axes first.
  const Shape lined_up =
      joined(joined(leading(rest, picks.place), picks.picked), from(rest, picks.place));
  std::vector<std::int64_t> first;
  for (std::int64_t i = 0; i < picked; ++i) first.push_back(picks.place + i);
  const Value updates = axes_first(l, l.expand(values, lined_up), first);
  const Value written = scatter_rows(l, front, where, updates, accumulate ? "add" : "none");
  return axes_back(l, written, picks.axes);
}

}  // namespace

Values index_put(Lower& l) {
  const Value x = l.in("self");
  const Value values = l.in("values", l.dtype(x));
  const Values indices = l.ins("indices");
  const bool accumulate = l.call().flag("accumulate");
  if (const OneMask by = one_mask(l, indices); by.mask != kNoValue) {
    const Value spread = spread_over(l, x, by, values);
    if (spread != kNoValue) return {put_by_mask(l, x, by, spread, accumulate)};
  }
  const Int count = l.call().dims().fresh("picked", 1, {0, shape::Range::kUnbounded});
  const Picks picks = picks_of(l, indices, count);
  if (picks.axes.empty()) return {l.expand(values, l.shape(x))};
  return {put_at(l, x, picks, values, accumulate)};
}

Values embedding(Lower& l) { return {l.gather(l.in("weight"), positions(l, l.in("indices")), 0)}; }

Values gather(Lower& l) {
  const Value x = l.in("self");
  const Value index = l.in("index");
  const std::int64_t axis = l.axis("dim", l.rank(x));
  if (l.rank(x) > 0 && l.rank(index) > 0) return {gather_elements(l, x, index, axis)};
  const Value along = l.rank(x) == 0 ? l.reshape(x, {1}) : x;
  const Value list = l.rank(index) == 0 ? l.reshape(index, {1}) : index;
  return {l.reshape(gather_elements(l, along, list, axis), l.shape(index))};
}

Values index_select(Lower& l) {
  const Value x = l.in("self");
  if (l.rank(x) == 0) return {x};
  const Value index = l.in("index");
  const Value list = positions(l, l.rank(index) == 0 ? l.reshape(index, {1}) : index);
  return {l.gather(x, list, l.axis("dim", l.rank(x)))};
}

Values take(Lower& l) { return {l.gather(flat(l, l.in("self")), positions(l, l.in("index")), 0)}; }

Values take_along_dim(Lower& l) {
  Value x = l.in("self");
  Value index = l.in("indices");
  if (!l.has("dim")) return {gather_elements(l, flat(l, x), flat(l, index), 0)};
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Shape& result = l.result().shape;
  const Shape wanted = with_size(result, axis, l.shape(x)[at(axis)]);
  return {gather_elements(l, l.expand(x, wanted), l.expand(index, result), axis)};
}

}  // namespace modelport::ops::onnx
