// Attention by onnxruntime's own operators: on a cache in place, and linear.
#include <limits>

#include "ops/onnx/attention.h"

namespace modelport::ops::onnx {
namespace {

/// [batch, heads, tokens, width] -> [batch, tokens, heads * width], as the kernel takes it. The
/// transposes cancel those that models have around attention.
Value joined_heads(Lower& l, Value x) {
  const Value turned = l.swap_axes(x, 1, 2);
  const Shape shape = l.shape(turned);
  return l.reshape(turned, {shape[0], shape[1], shape[2] * shape[3]});
}

/// A mask of the model's own, as numbers to add, and for each query 1 where it sees any key.
struct OwnMask {
  Value numbers, sees;
};

/// Numbers stay finite, for which the kernel wants them.
OwnMask own_mask(Lower& l, Value mask, Dtype dtype) {
  const Value lowest = l.number(dtype == Dtype::f16 ? -65504.0 : -0x1.fffffep127, dtype);
  if (l.dtype(mask) == Dtype::boolean)
    return {l.where(mask, l.number(0.0, dtype), lowest),
            l.reduce("ReduceMax", l.cast(mask, dtype), {3}, true)};
  const Value none = l.number(-std::numeric_limits<double>::infinity(), dtype);
  mask = l.cast(mask, dtype);
  const Value sees = l.compare("Greater", l.reduce("ReduceMax", mask, {3}, true), none);
  return {l.binary("Max", mask, lowest), l.cast(sees, dtype)};
}

/// Of a row that sees no key the kernel gives the mean of all values, and torch zeros.
Value without_the_blind(Lower& l, Value attended, const OwnMask& mask) {
  if (l.shape(mask.sees)[1] == Int(1)) return l.mul(attended, l.squeeze(mask.sees, {1}));
  const Shape joined = l.shape(attended), heads = l.shape(mask.sees);
  const Int width = shape::floor_div(joined[2], heads[1]);
  const Value parted = l.reshape(attended, {joined[0], joined[1], heads[1], width});
  return l.reshape(l.mul(parted, l.swap_axes(mask.sees, 1, 2)), joined);
}

/// The logarithm, which models take the exponential of.
Value logarithm(Lower& l, Value x) {
  const ir::Value& value = l.graph().value(x);
  if (value.origin == ir::Origin::node) {
    const ir::Node& made = l.graph().node(value.producer);
    if (made.op == "onnx.Exp")
      return *made.find("inputs")->get<ir::ArgList>()->front().get<Value>();
  }
  return l.unary("Log", x);
}

}  // namespace

Values group_query_attention(Lower& l) {
  const Value query = l.in("query");
  const Shape shape = l.shape(query);
  const Shape cache = l.shape(l.in("past_key"));
  const Value mask = l.in("attention_mask", Dtype::i64);
  const Value all = l.size(l.shape(mask)[1]);
  const bool has_own_mask = l.has("mask");
  const Value tokens =
      has_own_mask ? l.expand(all, {shape[0]}) : l.reduce("ReduceSum", mask, {1}, false);
  const Value last = l.cast(l.sub(tokens, l.number(std::int64_t{1}, Dtype::i64)), Dtype::i32);
  const Value total = l.cast(all, Dtype::i32);
  OwnMask own{kNoValue, kNoValue};
  if (has_own_mask) own = own_mask(l, l.in("mask"), l.dtype(query));
  Attributes attributes{{"num_heads", {shape[1]}}, {"kv_num_heads", {cache[1]}}};
  if (l.has("scale")) attributes.push_back({"scale", {l.real_number("scale")}});
  if (l.has("window")) attributes.push_back({"local_window_size", {l.call().integer("window")}});
  if (l.has("cap")) attributes.push_back({"softcap", {l.real_number("cap")}});
  if (l.has("cos")) attributes.push_back({"do_rotary", {Int(1)}});
  if (l.call().flag("looks_ahead")) attributes.push_back({"causal", {Int(0)}});
  if (l.call().flag("interleaved")) attributes.push_back({"rotary_interleaved", {Int(1)}});
  const Values results = l.emit_many(
      "com.microsoft.GroupQueryAttention",
      {joined_heads(l, query), joined_heads(l, l.in("key")), joined_heads(l, l.in("value")),
       l.in("past_key"), l.in("past_value"), last, total, l.in("cos"), l.in("sin"), kNoValue,
       own.numbers, l.in("sinks")},
      attributes,
      {{l.dtype(query), {shape[0], shape[2], shape[1] * shape[3]}}, l.result(1), l.result(2)});
  const Value attended = has_own_mask ? without_the_blind(l, results[0], own) : results[0];
  const Value parted = l.reshape(attended, {shape[0], shape[2], shape[1], shape[3]});
  return {l.swap_axes(parted, 1, 2), results[1], results[2]};
}

/// The kernel counts the tokens of a row; it does not look where the mask has them. So the new ones
/// come first, with padding behind them, and there is padding in the first call only: they are as
/// many as the place of the last one says, and all of them where others came before.
Values tokens_come_first(Lower& l) {
  const Value mask = l.in("attention_mask", Dtype::i64);
  const Shape sizes = l.shape(mask);
  const Int fresh = l.call().integer("tokens");
  const Value many = l.size(fresh), past = l.sub(l.size(sizes[1]), many);
  const Value part = l.emit(
      "Slice",
      {mask, l.unary("Neg", many), l.size(std::numeric_limits<std::int64_t>::max()), l.size(1)}, {},
      {Dtype::i64, {sizes[0], fresh}});
  // A number of any size is one token, and passes that look for the last one share this search.
  const Value there = l.cast(l.cast(part, Dtype::boolean), Dtype::i32);
  const Value last =
      l.emit("ArgMax", {there}, {{"axis", {Int(1)}}, {"select_last_index", {Int(1)}}},
             {Dtype::i64, {sizes[0], Int(1)}});
  const Value least = l.binary("Min", l.mul(past, many), many);
  const Value wanted = l.binary("Max", l.add(last, l.size(1)), least);
  const Value count = l.cast(l.reduce("ReduceSum", there, {1}, true), Dtype::i64);
  const Value missing = l.sub(wanted, count);
  return {l.compare("Equal", l.reduce("ReduceMax", missing, {0, 1}, false),
                    l.number(std::int64_t{0}, Dtype::i64))};
}

Values linear_attention(Lower& l) {
  const Value query = l.in("query");
  const Shape shape = l.shape(query);
  const Int width = l.shape(l.in("value"))[3];
  Value decay = logarithm(l, l.in("decay"));
  decay = l.rank(decay) == 3 ? l.swap_axes(decay, 1, 2) : joined_heads(l, decay);
  const Attributes attributes{{"q_num_heads", {shape[1]}},
                              {"kv_num_heads", {shape[1]}},
                              {"update_rule", {std::string("gated_delta")}},
                              {"scale", {1.0}}};
  const Values results = l.emit_many(
      "com.microsoft.LinearAttention",
      {joined_heads(l, query), joined_heads(l, l.in("key")), joined_heads(l, l.in("value")),
       l.in("initial_state"), decay, l.swap_axes(l.in("beta"), 1, 2)},
      attributes, {{l.dtype(query), {shape[0], shape[2], shape[1] * width}}, l.result(1)});
  const Value parted = l.reshape(results[0], {shape[0], shape[2], shape[1], width});
  return {l.swap_axes(parted, 1, 2), results[1]};
}

}  // namespace modelport::ops::onnx
