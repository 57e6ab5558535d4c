#include "ops/xnnpack/product.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/rules/axes.h"
#include "ops/xnnpack/shape.h"

namespace modelport::ops::xnnpack {
namespace {

constexpr std::string_view kNotReal = "not f32 with two to six axes";

/// What a fully connected node is made of. The filter is [out, in], or [in, out] if transposed.
struct Layer {
  Value input = kNoValue;
  Value filter = kNoValue;
  Value bias = kNoValue;
  bool transposed = false;
};

Value connected(Lower& l, const Layer& layer) {
  const Shape& filter = l.shape(layer.filter);
  Shape result = l.shape(layer.input);
  result.back() = filter[layer.transposed ? 1 : 0];
  std::vector<ir::NamedArg> args{{"input", {layer.input}}, {"filter", {layer.filter}}};
  const auto& stored = l.storing().linear_of(filter.back().constant().value_or(0));
  if (stored && !layer.transposed && l.is_weight(layer.filter)) {
    const Lower::Quantized weight = l.quantized(layer.filter, *stored);
    if (stored->rounds_inputs)
      args[0].arg = {
          l.node("Convert", {{"input", {layer.input}}}, {Dtype::i8, l.shape(layer.input)})};
    args[1].arg = {weight.codes};
    args.push_back({"scales", {weight.scales}});
  }
  if (layer.bias != kNoValue) args.push_back({"bias", {layer.bias}});
  if (layer.transposed) args.push_back({"transposed", {true}});
  return l.node("FullyConnected", std::move(args), {Dtype::f32, result});
}

bool is_matrix(Lower& l, Value x) { return l.takes(x) && l.rank(x) >= 2; }

/// The weight behind a transpose of it, or kNoValue.
Value weight_transposed(Lower& l, Value x) {
  const ir::Value& value = l.graph().value(x);
  if (value.origin != ir::Origin::node || l.rank(x) != 2) return kNoValue;
  const ir::Node& node = l.graph().node(value.producer);
  if (node.op != "xnn.StaticTranspose") return kNoValue;
  const Value weight = *node.find("input")->get<Value>();
  return l.is_constant(weight) ? weight : kNoValue;
}

/// kNoValue where the ranks cannot be made one.
Value multiplied(Lower& l, Value a, Value b, Value bias) {
  if (const Value weight = weight_transposed(l, b); weight != kNoValue)
    return connected(l, {.input = a, .filter = weight, .bias = bias});
  if (l.is_constant(b) && l.rank(b) == 2)
    return connected(l, {.input = a, .filter = b, .bias = bias, .transposed = true});
  Value& shorter = l.rank(a) < l.rank(b) ? a : b;
  Shape shape = l.shape(shorter);
  shape.insert(shape.begin(), static_cast<std::size_t>(std::abs(l.rank(a) - l.rank(b))), Int(1));
  shorter = l.reshaped(shorter, shape);
  if (shorter == kNoValue) return kNoValue;
  const Value y = l.product(a, b, false);
  return bias == kNoValue ? y : l.binary("Add", y, bias);
}

Lower::Mask made_mask(Lower& l, Value mask) {
  const double least = std::numeric_limits<float>::lowest();
  const bool is_truth = l.dtype(mask) == Dtype::boolean;
  const Value open =
      is_truth ? mask : l.call("aten.ne.Scalar", {mask, -std::numeric_limits<double>::infinity()});
  const Value seen = l.call("aten.any.dim", {open, -1, true});
  Lower::Mask made{.seen = l.call("aten._to_copy", {seen}, {{"dtype", Dtype::f32}})};
  made.added = is_truth ? l.call("aten.where.self",
                                 {mask, l.number(0.0, Dtype::f32), l.number(least, Dtype::f32)})
                        : l.call("aten.maximum", {mask, l.number(least, Dtype::f32)});
  return made;
}

/// Every query sees the key at its own place.
Lower::Mask causal_mask(Lower& l, const Int& queries, const Int& keys) {
  const auto counted = [&](const Int& n) {
    return l.call("aten.arange", {n}, {{"dtype", Dtype::i64}});
  };
  const Value later =
      l.call("aten.gt.Tensor", {counted(keys), l.call("aten.unsqueeze", {counted(queries), 1})});
  const double least = std::numeric_limits<float>::lowest();
  return {.added = l.call("aten.where.self",
                          {later, l.number(least, Dtype::f32), l.number(0.0, Dtype::f32)})};
}

/// Layers share a mask: it is made once, with an axis for groups where queries have one.
Lower::Mask mask_of(Lower& l, bool grouped) {
  const Value mask = l.tensor("attn_mask");
  const Shape& query = l.shape(l.tensor("query"));
  const Shape& key = l.shape(l.tensor("key"));
  const Int& queries = query[query.size() - 2];
  const Int& keys = key[key.size() - 2];
  const bool causal = l.call().flag("is_causal");
  if (!causal && mask == kNoValue) return {};
  const std::string name = causal ? fmt::format("{} by {}", print(queries), print(keys))
                                  : fmt::format("%{} grouped {}", mask.index, grouped);
  const auto known = l.masks().find(name);
  if (known != l.masks().end()) return known->second;
  Lower::Mask made = causal ? causal_mask(l, queries, keys) : made_mask(l, mask);
  if (grouped && !causal && l.rank(mask) > 2) {
    made.added = l.call("aten.unsqueeze", {made.added, -3});
    made.seen = l.call("aten.unsqueeze", {made.seen, -3});
  }
  return l.masks()[name] = made;
}

std::string_view why_no_attention(Lower& l) {
  const Value q = l.tensor("query"), k = l.tensor("key"), v = l.tensor("value");
  for (const Value x : {q, k, v}) {
    if (!is_matrix(l, x) || l.rank(x) > 4 || l.rank(x) != l.rank(q)) return kNotReal;
  }
  if (l.real_number("dropout_p") != 0) return "dropout at run time";
  if (!l.has("scale") && !l.shape(q).back().is_constant())
    return "the width of a head is no number";
  const Value mask = l.tensor("attn_mask");
  if (mask == kNoValue) return {};
  if (l.dtype(mask) != Dtype::boolean && l.dtype(mask) != Dtype::f32) return "a mask of that type";
  if (l.rank(mask) < 2 || l.rank(mask) > l.rank(q)) return "a mask without rows";
  return {};
}

struct Heads {
  Value q, k, v;  // the queries scaled
};

Value attended(Lower& l, const Heads& heads, const Lower::Mask& mask) {
  Value scores = l.product(heads.q, heads.k, true);
  if (mask.added != kNoValue) scores = l.binary("Add", scores, mask.added);
  const Value y = l.product(l.softmax(scores), heads.v, false);
  return mask.seen == kNoValue ? y : l.binary("Multiply", y, mask.seen);
}

/// Heads of keys one after the other, each with its queries. Where batch and length are both open,
/// queries could be put in groups only outside.
Value head_by_head(Lower& l, const Heads& heads, std::int64_t keys) {
  const std::int64_t queries = *l.shape(heads.q)[1].constant() / keys;
  const Lower::Mask mask = mask_of(l, false);
  Values parts;
  for (std::int64_t i = 0; i < keys; ++i) {
    const Value q = l.sliced(heads.q, 1, i * queries, queries);
    parts.push_back(attended(l, {q, l.sliced(heads.k, 1, i, 1), l.sliced(heads.v, 1, i, 1)}, mask));
  }
  return joined(l, parts, 1);
}

}  // namespace

Values linear(Lower& l) {
  const Value x = l.tensor("input"), weight = l.tensor("weight"), bias = l.tensor("bias");
  if (!is_matrix(l, x) || !is_matrix(l, weight) || l.rank(weight) != 2) return l.leave(kNotReal);
  if (bias != kNoValue && !l.takes(bias)) return l.leave("a bias that is not f32");
  const bool in_node = bias != kNoValue && l.is_constant(bias);
  const Value y = connected(l, {.input = x, .filter = weight, .bias = in_node ? bias : kNoValue});
  return {bias == kNoValue || in_node ? y : l.binary("Add", y, bias)};
}

Values addmm(Lower& l) {
  const Value a = l.tensor("mat1"), b = l.tensor("mat2"), bias = l.tensor("self");
  if (!is_matrix(l, a) || !is_matrix(l, b) || !l.takes(bias)) return l.leave(kNotReal);
  if (l.real_number("beta") != 1 || l.real_number("alpha") != 1) return l.leave("factors");
  const bool in_node = l.is_constant(bias) && l.shape(bias) == Shape{l.shape(b)[1]};
  const bool is_layer = l.is_constant(b) || weight_transposed(l, b) != kNoValue;
  if (in_node && is_layer) return {multiplied(l, a, b, bias)};
  return {l.binary("Add", multiplied(l, a, b, kNoValue), bias)};
}

Values matmul(Lower& l) {
  const bool by_other = schema_of(l.call().op()).find("other") != nullptr;
  const Value a = l.tensor("self"), b = l.tensor(by_other ? "other" : "mat2");
  if (!is_matrix(l, a) || !is_matrix(l, b)) return l.leave(kNotReal);
  const Value y = multiplied(l, a, b, kNoValue);
  return y == kNoValue ? l.leave("more than one size is known only when it runs") : Values{y};
}

Values attention(Lower& l) {
  if (const std::string_view why = why_no_attention(l); !why.empty()) return l.leave(why);
  Value q = l.tensor("query"), k = l.tensor("key"), v = l.tensor("value");
  const Shape shape = l.shape(q);
  const std::size_t heads = shape.size() - 3;
  const bool grouped =
      l.call().flag("enable_gqa") && l.rank(q) == 4 && shape[heads] != l.shape(k)[heads];
  if (grouped && l.has("attn_mask")) {
    const Value mask = l.tensor("attn_mask");
    if (l.rank(mask) == 4 && l.shape(mask)[1] != Int(1)) return l.leave("a mask for each head");
    if (l.rank(mask) == 3 && l.shape(mask)[0] != Int(1)) return l.leave("a mask for each head");
  }
  const double scale = l.has("scale")
                           ? l.real_number("scale")
                           : 1 / std::sqrt(static_cast<double>(*shape.back().constant()));
  q = l.binary("Multiply", q, l.real(scale));
  if (!grouped) return {attended(l, {q, k, v}, mask_of(l, false))};
  const std::optional<std::int64_t> keys = l.shape(k)[heads].constant();
  if (keys && !shape[0].is_constant() && !shape[2].is_constant() && shape[heads].is_constant())
    return {head_by_head(l, {q, k, v}, *keys)};
  const Int count = l.shape(k)[heads];
  // [batch, heads of keys, queries for each, length, width]
  q = l.call("aten.view", {q, Shape{shape[0], count, divided(l.call(), shape[heads], count),
                                    shape[2], shape[3]}});
  k = l.call("aten.unsqueeze", {k, 2});
  v = l.call("aten.unsqueeze", {v, 2});
  const Value y = attended(l, {q, k, v}, mask_of(l, true));
  return {l.call("aten.view", {y, l.result().shape})};
}

}  // namespace modelport::ops::xnnpack
