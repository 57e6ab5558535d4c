// Attention, products in groups, and distances.
#include <cmath>

#include "base/not_finite.h"
#include "ops/decompositions/linear.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

double scale_of(Emitter& e, Value query) {
  if (e.has("scale")) return e.real_number("scale");
  const Int width = e.shape(query).back();
  return 1 / std::sqrt(static_cast<double>(known(e, width, "the width of a head must be fixed")));
}

/// Heads that share keys stand under one another: [..., heads, group * length, width].
Value in_groups(Emitter& e, Value x, const Int& heads) {
  Shape shape = e.shape(x);
  if (shape.size() < 3 || shape[shape.size() - 3] == heads) return x;
  Int& own = shape[shape.size() - 3];
  shape[shape.size() - 2] = shape[shape.size() - 2] * divided(e.call(), own, heads);
  own = heads;
  return viewed(e, x, shape);
}

struct Scores {
  Value values;  // [..., heads, queries, keys]
  Value seen;    // whether a query sees a key at all; kNoValue where it surely does
};

Scores masked_scores(Emitter& e, const Int& heads, Dtype dtype) {
  const Value query = cast(e, e.tensor("query"), dtype);
  const Value key = cast(e, e.tensor("key"), dtype);
  const Value q = in_groups(e, scaled(e, query, scale_of(e, query)), heads);
  Value scores = product(e, q, transposed(e, key));
  const Int keys = e.shape(key)[at(e.rank(key) - 2)];
  const Int queries = e.shape(query)[at(e.rank(query) - 2)];
  Shape shape = leading(e.shape(scores), e.rank(scores) - 2);
  if (e.rank(query) >= 3) shape.back() = e.shape(query)[at(e.rank(query) - 3)];
  scores = viewed(e, scores, joined(shape, {queries, keys}));
  if (e.call().flag("is_causal")) {
    const Value later =
        compare(e, "aten.gt.Tensor", counted(e, keys), with_axis_at(e, counted(e, queries), 1));
    return {e.call("aten.masked_fill.Scalar", {scores, later, -kInfinity}), kNoValue};
  }
  if (!e.has("attn_mask")) return {scores, kNoValue};
  const Value mask = e.tensor("attn_mask");
  const bool yes_or_no = e.dtype(mask) == Dtype::boolean;
  const Value open = yes_or_no ? mask : e.call("aten.ne.Scalar", {mask, -kInfinity});
  const Value seen = e.call("aten.any.dim", {open, -1, true});
  if (!yes_or_no) return {add(e, scores, cast(e, mask, e.dtype(scores))), seen};
  const Value shut = e.call("aten.logical_not", {mask});
  return {e.call("aten.masked_fill.Scalar", {scores, shut, -kInfinity}), seen};
}

Value weighted_values(Emitter& e, const Scores& scores, const Int& heads) {
  const Value value = e.tensor("value");
  const Value shares = cast(e, e.call("aten._softmax", {scores.values, -1, false}), e.dtype(value));
  const Value y = viewed(e, product(e, in_groups(e, shares, heads), value), e.result().shape);
  // A query that sees nothing gets nothing.
  return scores.seen == kNoValue ? y : where(e, scores.seen, y, e.number(0.0, e.dtype(y)));
}

Int heads_of(Emitter& e, bool grouped) {
  const Value of = e.tensor(grouped ? "key" : "query");
  return e.rank(of) < 3 ? Int(1) : e.shape(of)[at(e.rank(of) - 3)];
}

}  // namespace

Value attention(Emitter& e) {
  if (e.real_number("dropout_p") != 0) e.refuse("dropout at run time");
  const Int heads = heads_of(e, e.call().flag("enable_gqa"));
  return weighted_values(e, masked_scores(e, heads, e.result().dtype), heads);
}

Values attention_with_sums(Emitter& e) {
  const Int heads = heads_of(e, false);
  const Scores scores = masked_scores(e, heads, e.result(1).dtype);
  const Value most = e.call("aten.amax", {scores.values, {-1}, true});
  const Value powers = e.call("aten.exp", {sub(e, scores.values, most)});
  const Value sums =
      add(e, e.call("aten.log", {sum_over(e, powers, {e.rank(powers) - 1}, true)}), most);
  return {weighted_values(e, scores, heads),
          cast(e, viewed(e, sums, e.result(1).shape), e.result(1).dtype)};
}

namespace {

/// Each row by the matrix of its group: all products, and from them the row's own.
Value rows_by_group(Emitter& e, Value rows, Value matrices, Value ends) {
  const Int groups = e.shape(matrices)[0];
  const Int count = e.shape(rows)[0];
  const Int columns = e.shape(matrices)[2];
  const Shape all{groups, count, e.shape(rows)[1]};
  const Value products = e.call("aten.bmm", {e.call("aten.expand", {rows, all}), matrices});
  const Value places = counted(e, count);
  const Value passed =
      compare(e, "aten.ge.Tensor", with_axis_at(e, places, 1), cast(e, ends, Dtype::i64));
  Value group = sum_over(e, cast(e, passed, Dtype::i64), {1});
  group = e.call("aten.clamp", {group, std::nullopt, groups - 1});
  const Value own = add(e, e.call("aten.mul.Scalar", {group, count}), places);
  return e.call("aten.index_select", {viewed(e, products, {groups * count, columns}), 0, own});
}

}  // namespace

Value grouped_mm(Emitter& e) {
  const Value a = e.tensor("self");
  const Value b = e.tensor("mat2");
  Value y = kNoValue;
  if (e.rank(a) == 3 && e.rank(b) == 3) {
    y = e.call("aten.bmm", {a, b});
  } else if (e.rank(b) == 3) {
    y = rows_by_group(e, a, b, e.tensor("offs"));
  } else if (e.rank(a) == 3) {
    y = transposed(e, rows_by_group(e, transposed(e, b), transposed(e, a), e.tensor("offs")));
  } else {  // groups of the summed axis
    const Value ends = with_axis_at(e, cast(e, e.tensor("offs"), Dtype::i64), 1);
    const Value places = counted(e, e.shape(a)[1]);
    const Value below = cast(e, compare(e, "aten.lt.Tensor", places, ends), Dtype::i64);
    const Int groups = e.shape(below)[0];
    const Value before = sliced(e, padded(e, below, {0, 0, 1, 0}), 0, 0, groups);
    const Value own = with_axis_at(e, cast(e, sub(e, below, before), e.dtype(a)), 1);
    y = product(e, mul(e, with_axis_at(e, a, 0), own), b);
  }
  if (e.has("bias")) y = add(e, y, e.tensor("bias"));
  return cast(e, y, e.result().dtype);
}

Value cdist(Emitter& e) {
  Value a = e.tensor("x1");
  Value b = e.tensor("x2");
  const Shape batch =
      leading(e.result().shape, static_cast<std::int64_t>(e.result().shape.size()) - 2);
  a = expanded(e, a, joined(batch, from(e.shape(a), e.rank(a) - 2)));
  b = expanded(e, b, joined(batch, from(e.shape(b), e.rank(b) - 2)));
  const bool is_euclid = schema_of(e.call().op()).find("p") == nullptr;
  return e.call("aten._cdist_forward", {a, b, is_euclid ? 2.0 : e.real_number("p"), std::nullopt});
}

Value pdist(Emitter& e) { return e.call("aten._pdist_forward", {e.arg("self"), e.arg("p")}); }

namespace {

Value norm_over(Emitter& e, Value x, double p, std::int64_t axis, bool keepdim) {
  if (p == 2) return e.call("aten.sqrt", {sum_over(e, mul(e, x, x), {axis}, keepdim)});
  const Value sizes = e.call("aten.abs", {x});
  if (p == 1) return sum_over(e, sizes, {axis}, keepdim);
  const Value powers = e.call("aten.pow.Tensor_Scalar", {sizes, p});
  return e.call("aten.pow.Tensor_Scalar", {sum_over(e, powers, {axis}, keepdim), 1 / p});
}

}  // namespace

Value cosine_similarity(Emitter& e) {
  const Value a = e.tensor("x1");
  const Value b = e.tensor("x2");
  const Value pairs = mul(e, a, b);
  const std::int64_t axis = e.axis("dim", e.rank(pairs));
  const std::int64_t last = axis - e.rank(pairs);  // operands may have fewer axes
  const Shape whole = e.shape(pairs);
  const auto length = [&](Value x) {
    x = expanded(e, x, whole);
    return e.call("aten.clamp", {norm_over(e, x, 2, last, false), e.real_number("eps")});
  };
  return div(e, sum_over(e, pairs, {last}), mul(e, length(a), length(b)));
}

Value pairwise_distance(Emitter& e) {
  const Value difference =
      e.call("aten.add.Scalar", {sub(e, e.tensor("x1"), e.tensor("x2")), e.real_number("eps")});
  return norm_over(e, difference, e.real_number("p"), -1, e.call().flag("keepdim"));
}

Value vecdot(Emitter& e) {
  const Value pairs = mul(e, e.tensor("x"), e.tensor("y"));
  return sum_over(e, pairs, {e.axis("dim", e.rank(pairs))});
}

Value cross(Emitter& e) {
  const Shape& shape = e.result().shape;
  const Value a = expanded(e, e.tensor("self"), shape);
  const Value b = expanded(e, e.tensor("other"), shape);
  std::int64_t axis = 0;
  if (e.has("dim")) {
    axis = e.axis("dim", e.rank(a));
  } else {
    while (shape[at(axis)] != Int(3)) ++axis;
  }
  const auto rolled = [&](Value x, std::int64_t by) {
    return e.call("aten.roll", {x, {by}, {axis}});
  };
  return sub(e, mul(e, rolled(a, -1), rolled(b, -2)), mul(e, rolled(a, -2), rolled(b, -1)));
}

}  // namespace modelport::ops::parts
