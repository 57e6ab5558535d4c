// Attention by onnxruntime's own operators: on a cache in place, and linear.
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
  const Value tokens = l.reduce("ReduceSum", mask, {1}, false);
  const Value last = l.cast(l.sub(tokens, l.number(std::int64_t{1}, Dtype::i64)), Dtype::i32);
  const Value total = l.cast(l.size(l.shape(mask)[1]), Dtype::i32);
  Attributes attributes{{"num_heads", {shape[1]}}, {"kv_num_heads", {cache[1]}}};
  if (l.has("scale")) attributes.push_back({"scale", {l.real_number("scale")}});
  if (l.has("window")) attributes.push_back({"local_window_size", {l.call().integer("window")}});
  if (l.has("cap")) attributes.push_back({"softcap", {l.real_number("cap")}});
  if (l.has("cos")) attributes.push_back({"do_rotary", {Int(1)}});
  if (l.call().flag("interleaved")) attributes.push_back({"rotary_interleaved", {Int(1)}});
  const Values results = l.emit_many(
      "com.microsoft.GroupQueryAttention",
      {joined_heads(l, query), joined_heads(l, l.in("key")), joined_heads(l, l.in("value")),
       l.in("past_key"), l.in("past_value"), last, total, l.in("cos"), l.in("sin"), kNoValue,
       kNoValue, l.in("sinks")},
      attributes,
      {{l.dtype(query), {shape[0], shape[2], shape[1] * shape[3]}}, l.result(1), l.result(2)});
  const Value parted = l.reshape(results[0], {shape[0], shape[2], shape[1], shape[3]});
  return {l.swap_axes(parted, 1, 2), results[1], results[2]};
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
