// Attention: the operator of ONNX 23 where it says the same as torch, else products and a softmax.
#include "ops/onnx/attention.h"

#include <cmath>
#include <limits>

#include "ops/onnx/pointwise.h"
#include "ops/onnx/product.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

struct Attention {
  Value query, key, value, mask = kNoValue;
  bool causal = false;
  bool grouped = false;  // several heads of the query share one of the key
  std::optional<double> scale;
};

Int from_end(Lower& l, Value x, std::size_t back) { return l.shape(x)[l.shape(x).size() - back]; }

Attention read(Lower& l, Dtype wide) {
  const bool can_group = schema_of(l.call().op()).find("enable_gqa") != nullptr;
  Attention a{.query = l.in("query", wide),
              .key = l.in("key", wide),
              .value = l.in("value", wide),
              .mask = l.in("attn_mask"),
              .causal = l.call().flag("is_causal"),
              .grouped = can_group && l.call().flag("enable_gqa")};
  if (a.mask != kNoValue && l.dtype(a.mask) != Dtype::boolean) a.mask = l.cast(a.mask, wide);
  if (l.has("scale")) {
    a.scale = l.real_number("scale");
  } else if (const auto width = from_end(l, a.query, 1).constant()) {
    a.scale = 1 / std::sqrt(static_cast<double>(*width));
  }
  if (l.real_number("dropout_p") != 0) l.refuse("dropout in attention");
  if (a.grouped) a.grouped = !(from_end(l, a.query, 3) == from_end(l, a.key, 3));
  return a;
}

// --- the operator of ONNX
// -------------------------------------------------------------------------

/// [batch, heads, length, width] on all sides, nothing empty: what the kernel takes.
bool fits_operator(Lower& l, const Attention& a) {
  if (l.opset() < 23 || !a.scale || !(*a.scale > 0)) return false;
  const Shape& q = l.shape(a.query);
  const Shape& k = l.shape(a.key);
  const Shape& v = l.shape(a.value);
  if (q.size() != k.size() || q.size() != v.size() || q.size() > 4) return false;
  for (const Value x : {a.query, a.key, a.value}) {
    for (const Int& size : l.shape(x)) {
      if (!l.surely_at_least(size, 1)) return false;
    }
  }
  if (q.size() < 3) return true;
  if (!(q[0] == k[0] && q[0] == v[0])) return false;
  if (q.size() == 3) return true;
  return k[1] == v[1] && (q[1] == k[1] || a.grouped || k[1] == Int(1));
}

/// The kernel wants the last two axes of a mask in full.
Value full_mask(Lower& l, const Attention& a) {
  Shape shape = l.shape(a.mask);
  shape[shape.size() - 2] = from_end(l, a.query, 2);
  shape.back() = from_end(l, a.key, 2);
  const Value mask = l.expand(a.mask, shape);
  if (l.dtype(mask) == Dtype::boolean) return mask;
  // Where every score of a row is the least number, the kernel takes the row for hidden and gives
  // zeros; torch does that for minus infinity alone. The greatest number below 1 sets them apart.
  return l.mul(mask, l.number(largest_below_one(l.dtype(mask)), l.dtype(mask)));
}

Value by_operator(Lower& l, Attention a, Dtype wide) {
  const std::int64_t rank = l.rank(a.query);
  const std::vector<std::int64_t> lead = rank == 2   ? std::vector<std::int64_t>{0, 1}
                                         : rank == 3 ? std::vector<std::int64_t>{1}
                                                     : std::vector<std::int64_t>{};
  Values inputs;
  Shape shape = l.result().shape;
  for (const std::int64_t axis : lead) shape.insert(shape.begin() + axis, Int(1));
  for (const Value x : {a.query, a.key, a.value}) inputs.push_back(l.unsqueeze(x, lead));
  if (a.mask != kNoValue) {
    const Value mask = full_mask(l, a);
    inputs.push_back(rank == 3 && l.rank(mask) == 3 ? l.unsqueeze(mask, {1}) : mask);
  }
  Attributes attributes;
  if (l.has("scale")) attributes.push_back({"scale", {*a.scale}});
  if (a.causal) attributes.push_back({"is_causal", {Int(1)}});
  return l.squeeze(l.emit("Attention", inputs, attributes, {wide, shape}), lead);
}

// --- by parts
// -------------------------------------------------------------------------------------

/// Heads of the query in groups, one for each head of the key: an axis more on every side.
void spread_groups(Lower& l, Attention& a) {
  const auto rank = l.shape(a.query).size();
  const Int heads = from_end(l, a.key, 3);
  const Int each = shape::floor_div(from_end(l, a.query, 3), heads);
  const auto spread = [&](Value x) {
    Shape shape = l.shape(x);
    const auto at = shape.end() - 3;
    *at = each;
    shape.insert(at, heads);
    return l.reshape(x, shape);
  };
  const auto axis = static_cast<std::int64_t>(rank) - 2;
  a.query = spread(a.query);
  a.key = l.unsqueeze(a.key, {axis});
  a.value = l.unsqueeze(a.value, {axis});
  if (a.mask != kNoValue && l.rank(a.mask) >= 3)
    a.mask = from_end(l, a.mask, 3) == Int(1) ? l.unsqueeze(a.mask, {l.rank(a.mask) - 2})
                                              : spread(a.mask);
}

Value scaled_query(Lower& l, const Attention& a) {
  const Dtype dtype = l.dtype(a.query);
  if (a.scale) return *a.scale == 1 ? a.query : l.mul(a.query, l.number(*a.scale, dtype));
  return l.div(a.query, l.unary("Sqrt", l.cast(l.scalar(from_end(l, a.query, 1)), dtype)));
}

struct Weights {
  Value scores;
  Value hidden = kNoValue;  // rows that see nothing: torch gives them zeros
};

/// A mask of numbers, with rows that are all minus infinity left open.
Weights masked(Lower& l, const Attention& a, Value scores) {
  const Dtype dtype = l.dtype(scores);
  const Value zero = l.number(0.0, dtype);
  const Value none = l.number(-std::numeric_limits<double>::infinity(), dtype);
  Value mask = a.mask;
  if (a.causal) {
    const Value rows = l.unsqueeze(l.range(from_end(l, a.query, 2)), {1});
    const Value seen = l.compare("LessOrEqual", l.range(from_end(l, a.key, 2)), rows);
    return {l.add(scores, l.where(seen, zero, none))};
  }
  if (mask == kNoValue) return {scores};
  if (l.dtype(mask) == Dtype::boolean) mask = l.where(mask, zero, none);
  if (!l.surely_at_least(from_end(l, mask, 1), 1)) return {l.add(scores, mask)};
  const Value best = l.reduce("ReduceMax", mask, {l.rank(mask) - 1}, true);
  const Value hidden = l.compare("Equal", best, none);
  return {l.add(scores, l.where(hidden, zero, mask)), hidden};
}

struct Parts {
  Value output;
  Value scores;
};

Parts by_parts(Lower& l, Attention a) {
  if (a.grouped) spread_groups(l, a);
  const std::int64_t rank = l.rank(a.key);
  const Value scores = l.matmul(scaled_query(l, a), l.swap_axes(a.key, rank - 2, rank - 1));
  const Weights weights = masked(l, a, scores);
  const Value shares =
      l.emit("Softmax", {weights.scores}, {{"axis", {Int(-1)}}}, l.type(weights.scores));
  Value output = l.matmul(shares, a.value);
  if (weights.hidden != kNoValue)
    output = l.where(weights.hidden, l.number(0.0, l.dtype(output)), output);
  return {output, weights.scores};
}

}  // namespace

Values attention(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = sum_dtype(own);
  const Attention a = read(l, wide);
  if (fits_operator(l, a)) return {l.cast(by_operator(l, a, wide), own)};
  return {l.cast(l.reshape(by_parts(l, a).output, l.result().shape), own)};
}

Values attention_for_cpu(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = l.result(1).dtype;
  const Parts parts = by_parts(l, read(l, wide));
  const Value sums = l.reduce("ReduceLogSumExp", parts.scores, {l.rank(parts.scores) - 1}, false);
  return {l.cast(parts.output, own), sums};
}

// --- products in groups
// ---------------------------------------------------------------------------

namespace {

/// Cut into `groups` parts along an axis, at offsets that only the data knows. What lies behind the
/// last offset is no part; it comes as one more.
Values parts_at(Lower& l, Value x, std::int64_t axis, Value offsets, std::int64_t groups) {
  const Value whole = l.size(l.shape(x)[static_cast<std::size_t>(axis)]);
  const Value ends = l.concat({offsets, whole}, 0);
  const Value starts = l.concat({l.ints({0}), offsets}, 0);
  std::vector<ir::TensorType> types;
  for (std::int64_t i = 0; i <= groups; ++i) {
    const Int size = l.call().unknown_size(0, static_cast<std::size_t>(i));
    types.push_back({l.dtype(x), with_size(l.shape(x), axis, size)});
  }
  return l.emit_many("Split", {x, l.sub(ends, starts)}, {{"axis", {Int(axis)}}}, std::move(types));
}

Values parts_of(Lower& l, Value x, std::int64_t groups) {
  std::vector<ir::TensorType> types(static_cast<std::size_t>(groups),
                                    {l.dtype(x), with_size(l.shape(x), 0, 1)});
  if (groups == 1) return {x};
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(groups), 1);
  return l.emit_many("Split", {x, l.ints(ones)}, {{"axis", {Int(0)}}}, std::move(types));
}

}  // namespace

Values grouped_mm(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(l.call().dtype_of("self"));
  const Value a = l.in("self", wide);
  const Value b = l.in("mat2", wide);
  if (l.has("bias")) l.refuse("a bias in a grouped product");
  if (l.rank(a) == 3 && l.rank(b) == 3) return {l.cast(l.matmul(a, b), own)};
  const Value offsets = l.in("offs", Dtype::i64);
  const auto groups = l.shape(offsets)[0].constant();
  if (!groups) l.refuse("the number of groups must be known before the program runs");
  if (*groups == 0) return {l.filled(l.number(0.0, own), l.result().shape)};
  const bool rows = l.rank(b) == 3;     // groups of rows
  const bool columns = l.rank(a) == 3;  // groups of columns
  const Value lifted = rows || columns ? a : l.unsqueeze(a, {0});
  const auto cut = [&](Value x, std::int64_t axis) {
    return parts_at(l, x, axis, offsets, *groups);
  };
  const Values left = columns ? parts_of(l, a, *groups) : cut(lifted, rows ? 0 : 2);
  const Values right = rows ? parts_of(l, b, *groups) : cut(b, columns ? 1 : 0);
  Values products;
  for (std::size_t i = 0; i < static_cast<std::size_t>(*groups); ++i)
    products.push_back(l.matmul(left[i], right[i]));
  // Rows that belong to no group: torch leaves there what was in memory, here they are the last
  // group's.
  const auto last = static_cast<std::size_t>(*groups);
  if (rows) products.push_back(l.matmul(left[last], right[last - 1]));
  if (columns) products.push_back(l.matmul(left[last - 1], right[last]));
  const Value joint = l.concat(products, rows ? 1 : columns ? 2 : 0);
  const Value y = rows || columns ? l.squeeze(joint, {0}) : joint;
  return {l.cast(y, own)};
}

}  // namespace modelport::ops::onnx
