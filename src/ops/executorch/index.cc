// Masks become the places where they are true; indices are of 64 bits.
#include "ops/executorch/index.h"

#include <algorithm>

#include "ops/decompositions/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::executorch {
namespace {

/// The places where a mask is true, `count` of them: a column for each axis.
Values places_of(Lower& l, Value mask, const Int& count) {
  const std::int64_t rank = l.rank(mask);
  const Values found =
      l.node("et.aten.nonzero.out", {{"self", {mask}}}, {Dtype::i64, {count, Int(rank)}});
  Values columns;
  for (std::int64_t i = 0; i < rank; ++i) columns.push_back(parts::selected(l, found[0], 1, i));
  return columns;
}

ir::Arg tensor_list(const Values& values) {
  ir::ArgList list;
  for (const Value value : values) {
    if (value == kNoValue) {
      list.push_back({});
    } else {
      list.push_back({value});
    }
  }
  return {std::move(list)};
}

bool is_mask(Lower& l, Value x) {
  return x != kNoValue && (l.dtype(x) == Dtype::boolean || l.dtype(x) == Dtype::u8);
}

bool has_mask(Lower& l, const Values& indices) {
  return std::ranges::any_of(indices, [&](Value i) { return is_mask(l, i); });
}

/// Where the axes that indices give stand in the result, the last of them.
std::size_t last_index_axis(Lower& l, const Values& indices) {
  std::size_t first = 0;
  std::size_t axis = 0;
  std::size_t runs = 0;
  std::int64_t rank = 0;
  bool before = false;
  for (const Value x : indices) {
    if (x != kNoValue) {
      if (!before && runs++ == 0) first = axis;
      rank = std::max<std::int64_t>(rank, is_mask(l, x) ? 1 : l.rank(x));
    }
    before = x != kNoValue;
    axis += is_mask(l, x) ? static_cast<std::size_t>(l.rank(x)) : 1;
  }
  return (runs == 1 ? first : 0) + static_cast<std::size_t>(std::max<std::int64_t>(rank, 1)) - 1;
}

/// Indices as the kernels take them: no masks, 64 bits. Masks have `count` true elements.
Values plain_indices(Lower& l, const Values& indices, const Int& count) {
  Values plain;
  for (const Value x : indices) {
    if (x == kNoValue) {
      plain.push_back(x);
    } else if (is_mask(l, x)) {
      for (const Value column : places_of(l, x, count)) plain.push_back(column);
    } else {
      plain.push_back(parts::cast(l, x, Dtype::i64));
    }
  }
  return plain;
}

/// The mask, where it is the only index, with an axis for each axis of the tensor.
Value only_mask(Lower& l, const Values& indices, std::int64_t rank) {
  Value mask = kNoValue;
  std::int64_t before = 0;
  for (const Value x : indices) {
    if (x == kNoValue && mask == kNoValue) ++before;
    if (x == kNoValue) continue;
    if (mask != kNoValue || !is_mask(l, x)) return kNoValue;
    mask = x;
  }
  if (mask == kNoValue) return mask;
  Shape shape = l.shape(mask);
  shape.insert(shape.begin(), static_cast<std::size_t>(before), Int(1));
  shape.resize(static_cast<std::size_t>(rank), Int(1));
  return parts::viewed(l, mask, shape);
}

std::int64_t rank_of_masks(Lower& l, const Values& indices) {
  std::int64_t rank = 0;
  for (const Value i : indices) rank += is_mask(l, i) ? l.rank(i) : 0;
  return rank;
}

/// The axis of the values that has one for each place; negative where they have none.
std::int64_t axis_of_places(Lower& l, const Values& indices, const Shape& values) {
  const auto axis = static_cast<std::int64_t>(last_index_axis(l, indices));
  const std::int64_t behind = l.rank(l.tensor("self")) - rank_of_masks(l, indices) - axis;
  return static_cast<std::int64_t>(values.size()) - 1 - behind;
}

/// The same value for all places of a mask: nobody has to know where they are.
Value put_where_true(Lower& l, const Values& indices, Value values, std::int64_t own) {
  const Value x = l.tensor("self");
  const Value mask = only_mask(l, indices, l.rank(x));
  if (mask == kNoValue) l.refuse("a mask beside other indices, and one value for all its places");
  if (own >= 0) {  // the mask's axes stand where that of the places was
    Shape spread = l.shape(values);
    const auto more = static_cast<std::size_t>(rank_of_masks(l, indices) - 1);
    spread.insert(spread.begin() + own, more, Int(1));
    values = parts::viewed(l, values, spread);
  }
  if (l.call().flag("accumulate")) values = parts::add(l, x, values);
  return parts::where(l, mask, values, x);
}

/// The values with every axis of the tensor, for the kernel that writes in place: it takes one list
/// of places along one axis, and a value for each element there. Nothing where that is not so.
Value as_whole_rows(Lower& l, Value x, const Values& indices, Value values) {
  Shape rows = l.shape(x);
  const auto is_given = [](Value i) { return i != kNoValue; };
  const auto index = std::ranges::find_if(indices, is_given);
  if (std::ranges::count_if(indices, is_given) != 1 || l.rank(*index) != 1) return kNoValue;
  rows[static_cast<std::size_t>(index - indices.begin())] = l.shape(*index)[0];
  Shape given = l.shape(values);
  if (given.size() > rows.size()) return kNoValue;
  given.insert(given.begin(), rows.size() - given.size(), Int(1));
  if (given != rows) return kNoValue;
  return l.rank(values) == l.rank(x) ? values : parts::viewed(l, values, rows);
}

}  // namespace

/// Kernels for quantized rows give f32, and take places as i64 only.
Values embedding(Lower& l) {
  const Value weight = l.tensor("weight");
  const auto& stored = l.storing().embedding;
  if (!stored || !l.is_weight(weight) || l.dtype(weight) != Dtype::f32)
    return l.kernel_with_own_operands("aten::embedding.out");
  const Lower::Quantized rows = l.quantized(weight, *stored);
  const Value places = l.call("aten._to_copy", {l.arg("indices")}, {{"dtype", Dtype::i64}});
  const std::int64_t half = std::int64_t{1} << (stored->bits - 1);
  return l.kernel(stored->bits == 4 ? "quantized_decomposed::embedding_4bit.out"
                                    : "quantized_decomposed::embedding_byte.out",
                  {{"weight", {rows.codes}},
                   {"weight_scales", {rows.scales}},
                   {"weight_zero_points", {}},
                   {"weight_quant_min", {Int(-half)}},
                   {"weight_quant_max", {Int(half - 1)}},
                   {"indices", {places}}});
}

Values index(Lower& l) {
  const Value x = l.tensor("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  const Values given = l.ins("indices");
  const Int count = has_mask(l, given) ? l.result().shape[last_index_axis(l, given)] : Int(1);
  const Values indices = plain_indices(l, given, count);
  return l.kernel("aten::index.Tensor_out", {{"self", {x}}, {"indices", tensor_list(indices)}});
}

Values index_put(Lower& l) {
  const Value x = l.tensor("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  const Values indices = l.ins("indices");
  const Value values = parts::cast(l, l.tensor("values"), l.dtype(x));
  Int count = 1;
  if (has_mask(l, indices)) {
    const std::int64_t own = axis_of_places(l, indices, l.shape(values));
    const bool single = own < 0 || l.shape(values)[static_cast<std::size_t>(own)] == Int(1);
    if (single) return {put_where_true(l, indices, values, own)};
    count = l.shape(values)[static_cast<std::size_t>(own)];
  }
  const bool accumulate = l.call().flag("accumulate");
  const Values plain = plain_indices(l, indices, count);
  const Value rows = accumulate ? kNoValue : as_whole_rows(l, x, plain, values);
  // Where it lies, if nothing else reads it: the writer copies it first where something does.
  return l.kernel(rows == kNoValue ? "aten::index_put.out" : "aten::index_put_",
                  {{"self", {x}},
                   {"indices", tensor_list(plain)},
                   {"values", {rows == kNoValue ? values : rows}},
                   {"accumulate", {accumulate}}});
}

Values nonzero_columns(Lower& l) {
  const bool named = schema_of(l.call().op()).find("condition") != nullptr;
  return places_of(l, l.tensor(named ? "condition" : "self"), l.result().shape[0]);
}

Values repeat_interleave_by_tensor(Lower& l) {
  Value x = l.tensor("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  if (!l.has("dim")) x = parts::viewed(l, x, {numel(l.shape(x))});
  const std::int64_t axis = l.has("dim") ? l.axis("dim", l.rank(x)) : 0;
  const std::size_t place = static_cast<std::size_t>(axis);
  const Value repeats =
      parts::expanded(l, parts::cast(l, l.tensor("repeats"), Dtype::i64), {l.shape(x)[place]});
  const Values rows =
      l.node("et.aten.repeat_interleave.Tensor_out", {{"repeats", {repeats}}, {"output_size", {}}},
             {Dtype::i64, {l.result().shape[place]}});
  return l.kernel("aten::index_select.out",
                  {{"self", {x}}, {"dim", {Int(axis)}}, {"index", {rows[0]}}});
}

}  // namespace modelport::ops::executorch
