// Attention, products in groups, distances and other sums over pairs of vectors.
#include "ops/onnx/attention.h"

#include <array>

#include "ops/decompositions/linear.h"
#include "ops/emit/emitter.h"
#include "ops/onnx/distance.h"
#include "ops/onnx/scan.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/product.h"

namespace modelport::ops {
namespace {

/// [..., heads, length, width]: queries, keys and values, the axes before the last two broadcast.
/// With grouped heads (gqa) a key serves several queries, and the heads are those of the query.
Shape attention_shape(Call& call, bool grouped) {
  const Shape& query = call.shape("query");
  const Shape& key = call.shape("key");
  const Shape& value = call.shape("value");
  const std::int64_t rank = call.rank("query");
  call.require(rank >= 2 && key.size() >= 2 && value.size() >= 2, "attention needs two axes");
  call.require(call.equal(query.back(), key.back()), "queries and keys of different width");
  const std::size_t last = value.size() - 1;
  const Int length = agreed(call, key[key.size() - 2], value[last - 1]);
  Shape result;
  if (grouped) {
    result = leading(query, rank - 2);
    for (std::int64_t i = 0; i + 3 < rank; ++i) {
      result[i] = broadcast(call, result[i], size_at(call, key, i));
    }
  } else {
    const auto batch = [](const Shape& shape) {
      return leading(shape, static_cast<std::int64_t>(shape.size()) - 2);
    };
    result = broadcast(call, broadcast(call, batch(query), batch(key)), batch(value));
  }
  if (call.has("attn_mask")) {
    const Shape scores = joined(result, {query[rank - 2], length});
    const Shape& mask = call.shape("attn_mask");
    call.require(mask.size() <= scores.size(), "a mask with too many axes");
    const std::size_t lead = scores.size() - mask.size();
    for (std::size_t i = 0; i < mask.size(); ++i) expanded(call, mask[i], scores[lead + i]);
  }
  return joined(std::move(result), {query[rank - 2], value[last]});
}

Results attention(Call& call) {
  return one(call.dtype_of("query"), attention_shape(call, call.flag("enable_gqa")));
}

Results cached_attention(Call& call) {
  const Shape& query = call.shape("query");
  const Shape& value = call.shape("value");
  call.require(query.size() == 4 && value.size() == 4, "cached attention needs four axes");
  return one(call.dtype_of("query"), {query[0], query[1], query[2], value[3]});
}

Results experts(Call& call) {
  call.require(call.rank("tokens") == 2 && call.rank("gate_up") == 3 && call.rank("down") == 3,
               "experts need tokens with two axes, and weights with three");
  return one(call.dtype_of("tokens"), call.shape("tokens"));
}

Results gated_delta_rule(Call& call) {
  const Shape& query = call.shape("query");
  const Shape& value = call.shape("value");
  const Dtype dtype = call.dtype_of("query");
  call.require(query.size() == 4 && value.size() == 4, "the delta rule needs four axes");
  return {ir::TensorType{dtype, {query[0], query[1], query[2], value[3]}},
          ir::TensorType{dtype, call.shape("initial_state")}};
}

/// [batch, heads, length, width]; the cache has room for at least the tokens so far, and what comes
/// out is as long as the cache, or as the tokens where these are more.
Results group_query_attention(Call& call) {
  const Shape& query = call.shape("query");
  const Shape& past = call.shape("past_key");
  const Shape& mask = call.shape("attention_mask");
  call.require(query.size() == 4 && past.size() == 4 && mask.size() == 2,
               "attention on a cache needs four axes, and two of its mask");
  const Int length = past[2] == mask[1] ? mask[1] : shape::max(past[2], mask[1]);
  const ir::TensorType cache{call.dtype_of("past_key"), {past[0], past[1], length, past[3]}};
  return {call.tensor("query"), cache, cache};
}

Results tokens_come_first(Call& call) {
  call.require(call.rank("attention_mask") == 2, "a mask of tokens has two axes");
  return one(Dtype::boolean, {});
}

Results updated_cache(Call& call) { return one(call.dtype_of("cache"), call.shape("cache")); }

Results attention_for_cpu(Call& call) {
  const Shape result = attention_shape(call, false);
  const Dtype dtype = call.dtype_of("query");
  const Dtype sums = dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  return {ir::TensorType{dtype, result}, ir::TensorType{sums, leading(result, 3)}};
}

/// Where one side is flat, `offs` cuts it into groups: of rows, of columns, or of the summed axis.
Results grouped_mm(Call& call) {
  const Shape& a = call.shape("self");
  const Shape& b = call.shape("mat2");
  const Dtype dtype = call.dtype("out_dtype").value_or(call.dtype_of("self"));
  call.require(a.size() / 2 == 1 && b.size() / 2 == 1, "a product of two or three axes");
  call.require(call.equal(a.back(), b[b.size() - 2]), "the sizes of a product do not fit");
  const Int& rows = a[a.size() - 2];
  const Int& columns = b.back();
  if (a.size() == 3 && b.size() == 3) return one(dtype, {agreed(call, a[0], b[0]), rows, columns});
  if (a.size() == 3 || b.size() == 3) {
    const Int& groups = a.size() == 3 ? a[0] : b[0];
    if (call.has("offs")) agreed(call, groups, size_at(call, call.shape("offs"), 0));
    return one(dtype, {rows, columns});
  }
  return one(dtype, {size_at(call, call.shape("offs"), 0), rows, columns});
}

Results grouped_rows(Call& call) {
  const Shape& rows = call.shape("input");
  const Shape& weight = call.shape("weight");
  call.require(rows.size() == 2 && weight.size() == 3, "rows and a matrix for each group");
  call.require(call.equal(rows[1], weight[1]), "the sizes of a product do not fit");
  agreed(call, weight[0], size_at(call, call.shape("offs"), 0));
  return one(call.dtype_of("input"), {rows[0], weight[2]});
}

Results cdist(Call& call) {
  const Shape& a = call.shape("x1");
  const Shape& b = call.shape("x2");
  const std::int64_t rank_a = call.rank("x1");
  const std::int64_t rank_b = call.rank("x2");
  call.require(rank_a >= 2 && rank_b >= 2, "cdist takes matrices");
  call.require(call.equal(a.back(), b.back()), "vectors of different size");
  const Shape batch = broadcast(call, leading(a, rank_a - 2), leading(b, rank_b - 2));
  return one(promote(call, {"x1", "x2"}), joined(batch, {a[rank_a - 2], b[rank_b - 2]}));
}

Results pdist(Call& call) {
  const Int& rows = size_at(call, call.shape("self"), 0);
  return one(call.dtype_of("self"), {shape::floor_div(rows * (rows - 1), 2)});
}

Results cosine_similarity(Call& call) {
  const Shape pairs = broadcast_args(call, {"x1", "x2"});
  const std::int64_t axis = axis_of(call, "dim", static_cast<std::int64_t>(pairs.size()));
  return one(to_floating(promote(call, {"x1", "x2"})), without_axis(pairs, axis));
}

Results pairwise_distance(Call& call) {
  const Shape pairs = broadcast_args(call, {"x1", "x2"});
  const std::int64_t last = std::max<std::int64_t>(static_cast<std::int64_t>(pairs.size()) - 1, 0);
  return one(to_floating(promote(call, {"x1", "x2"})), reduce(pairs, {last}, call.flag("keepdim")));
}

Results vecdot(Call& call) {
  const Shape pairs = broadcast_args(call, {"x", "y"});
  const std::int64_t axis = axis_of(call, "dim", static_cast<std::int64_t>(pairs.size()));
  return one(promote(call, {"x", "y"}), without_axis(pairs, axis));
}

Results cross(Call& call) {
  return one(promote(call, {"self", "other"}), broadcast_args(call, {"self", "other"}));
}

Value as_grouped_mm(emit::Emitter& e) {
  return e.call("aten._grouped_mm", {e.arg("input"), e.arg("weight"), e.arg("offs")});
}

constexpr std::array kAttentionOps{
    OpDef{.name = "aten._cdist_forward",
          .schema = "(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
          .infer = cdist,
          .onnx = custom(onnx::cdist),
          .samples = "f32[a, 3], f32[b, 3], 2.0, None; f32[2, a, 3], f32[2, b, 3], 1.0, 0"},
    OpDef{.name = "aten._euclidean_dist",
          .schema = "(Tensor x1, Tensor x2) -> Tensor",
          .infer = cdist,
          .onnx = custom(onnx::cdist),
          .executorch = decompose(parts::cdist),
          .samples = "f32[a, 3], f32[b, 3]; f32[2, a, 3], f32[2, b, 3]"},
    OpDef{.name = "aten._grouped_mm",
          .schema = "(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
                    "out_dtype=None) -> Tensor",
          .infer = grouped_mm,
          .onnx = custom(onnx::grouped_mm),
          .executorch = decompose(parts::grouped_mm),
          .samples = "bf16[2*a, 16], bf16[3, 16, 8], i32<1>[3]; bf16[3, b, 16], bf16[3, 16, 8]; "
                     "f32[a, 16], f32[2, 16, 8], i32<1>[2]; f32[16, 16], f32[16, 8], i32<1>[3]; "
                     "f32[3, 8, 16], f32[16, 8], i32<1>[3]"},
    OpDef{.name = "aten._pdist_forward",
          .schema = "(Tensor self, float p=2.) -> Tensor",
          .infer = pdist,
          .onnx = custom(onnx::pdist),
          .samples = "f32[a, 3]; f32[b, 2], 1.0"},
    OpDef{.name = "aten._scaled_dot_product_flash_attention_for_cpu",
          .schema =
              "(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, "
              "*, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
          .infer = attention_for_cpu,
          .onnx = custom(onnx::attention_for_cpu),
          .executorch = decompose(parts::attention_with_sums),
          .samples = "f32[a, 2, b, 4], f32[a, 2, c, 4], f32[a, 2, c, 4]; bf16[a, 2, b, 4], bf16[a, "
                     "2, b, 4], bf16[a, 2, b, 4], 0.0, True"},
    OpDef{.name = "aten.cdist",
          .schema = "(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
          .infer = cdist,
          .onnx = custom(onnx::cdist),
          .executorch = decompose(parts::cdist),
          .samples = "f32[a, 3], f32[b, 3]; f32[2, a, 3], f32[c, 1, b, 3], 1.0"},
    OpDef{.name = "aten.cosine_similarity",
          .schema = "(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
          .infer = cosine_similarity,
          .onnx = custom(onnx::cosine_similarity),
          .executorch = decompose(parts::cosine_similarity),
          .samples = "f32[a, b], f32[a, b]; f32[a, 1, 3], f32[b, 3], -1; f32[a, b], f32[a, 1], 0"},
    OpDef{.name = "aten.cross",
          .schema = "(Tensor self, Tensor other, int? dim=None) -> Tensor",
          .infer = cross,
          .onnx = custom(onnx::cross),
          .executorch = decompose(parts::cross),
          .samples = "f32[a, 3], f32[a, 3]; f32[b, 3, a], f32[1, 3, a], 1"},
    OpDef{.name = "aten.linalg_cross",
          .schema = "(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
          .infer = cross,
          .onnx = custom(onnx::cross),
          .executorch = decompose(parts::cross),
          .samples = "f32[a, 3], f32[a, 3]; f32[b, 3, a], f32[1, 3, a], dim=1"},
    OpDef{.name = "aten.linalg_vecdot",
          .schema = "(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
          .infer = vecdot,
          .onnx = custom(onnx::vecdot),
          .executorch = decompose(parts::vecdot),
          .samples = "f32[a, b], f32[a, b]; f32[a, 1, 3], f32[b, 3], dim=0"},
    OpDef{.name = "aten.pairwise_distance",
          .schema = "(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
                    "keepdim=False) -> Tensor",
          .infer = pairwise_distance,
          .onnx = custom(onnx::pairwise_distance),
          .executorch = decompose(parts::pairwise_distance),
          .samples = "f32[a, b], f32[a, b]; f32[a, 1, 3], f32[b, 3], keepdim=True"},
    OpDef{.name = "aten.pdist",
          .schema = "(Tensor self, float p=2.) -> Tensor",
          .infer = pdist,
          .onnx = custom(onnx::pdist),
          .executorch = decompose(parts::pdist),
          .samples = "f32[a, 3]; f32[b, 2], 1.0"},
    OpDef{
        .name = "aten.scaled_dot_product_attention",
        .schema =
            "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
            "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        .infer = attention,
        .layout = Layout::dense,
        .onnx = custom(onnx::attention),
        .executorch = decompose(parts::attention),
        .xnnpack = custom(xnnpack::attention),
        .samples =
            "f32[a, 2, b, 4], f32[a, 2, c, 4], f32[a, 2, c, 6]; f32[a, 2, b, 4], f32[a, 2, "
            "c, 4], f32[a, 2, c, 4], f32[a, 1, b, c]; f32[a, 2, b, 4], f32[a, 2, b, 4], "
            "f32[a, 2, b, 4], is_causal=True; f32[a, 6, b, 4], f32[a, 2, c, 4], f32[a, 2, "
            "c, 4], enable_gqa=True; f32[b, 4], f32[c, 4], f32[c, 4]; f32[a, 2, b, 4], "
            "f32[a, 2, c, 4], f32[a, 2, c, 4], bool[b, c], scale=0.5; f32[1, 2, b, 4], "
            "f32[a, 2, c, 4], f32[a, 2, c, 4]; bf16[a, b, 4], bf16[a, c, 4], bf16[a, c, 4]; "
            "f32[a, 2, b, 4], f32[a, 2, c, 4], f32[a, 2, c, 4], bool[a, 1, 1, c]; f32[a, 2, "
            "b, 4], f32[a, 2, c, 4], f32[a, 2, c, 3], is_causal=True, scale=0.3; f32[a, 6, "
            "b, 4], f32[a, 2, c, 4], f32[a, 2, c, 4], bool[a, 6, b, c], enable_gqa=True; "
            "f32[a, 6, b, 4], f32[a, 3, c, 4], f32[a, 3, c, 4], f32[a, 1, b, c], "
            "enable_gqa=True; f32[a, b, 4], f32[a, c, 4], f32[a, c, 4], bool[a, b, c]; "
            "f32[a, 2, 2, b, 4], f32[a, 2, 2, c, 4], f32[a, 2, 2, c, 4], f32[a, 1, 1, b, c]; "
            "f32[b, 4], f32[c, 4], f32[c, 4], bool[b, c]; f64[a, 2, 1, 4], f64[a, 2, c, 4], "
            "f64[a, 2, c, 4]; f32[a, 2, b, 4], f32[a, 2, c, 4], f32[a, 2, c, 4], f32[1, c]"},
    // What our own caches ask for, in the form of the kernels of ExecuTorch for language models:
    // [batch, length, heads, width], of a cache that has tokens up to `start_pos` and those of the
    // query behind them.
    OpDef{.name = "modelport.cached_attention",
          .schema = "(Tensor query, Tensor key, Tensor value, SymInt start_pos, Tensor? "
                    "attn_mask=None, float drpout_p=0., bool is_causal=False, float? scale=None) "
                    "-> Tensor",
          .infer = cached_attention,
          .onnx = refuse("it is for caches of ExecuTorch programs"),
          .executorch = direct("llama::custom_sdpa.out"),
          .samples = "f32[1, a, 4, 8], f32[1, 16, 2, 8], f32[1, 16, 2, 8], 2, None, 0.0, True; "
                     "f32[1, a, 4, 8], f32[1, 16, 4, 8], f32[1, 16, 4, 8], 3, f32[a, 16], "
                     "scale=0.5"},
    // A mixture of experts: down(silu(gate x) * up x) of those that were chosen, [tokens, k], each
    // with its share. gate_up is [experts, 2 * inner, outer], down [experts, outer, inner].
    OpDef{.name = "modelport.experts",
          .schema = "(Tensor tokens, Tensor shares, Tensor chosen, Tensor gate_up, Tensor down) -> "
                    "Tensor",
          .infer = experts,
          .onnx = custom(onnx::experts),
          .executorch = refuse("it is for onnxruntime"),
          .samples = "f32[a, 16], f32[a, 2], i64<4>[a, 2], f32[4, 64, 16], f32[4, 16, 32]"},
    // Linear attention: [batch, heads, length, width], beta [batch, heads, length], decay as beta
    // or with a width.
    OpDef{.name = "modelport.gated_delta_rule",
          .schema = "(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor "
                    "initial_state) -> (Tensor, Tensor)",
          .infer = gated_delta_rule,
          .onnx = custom(onnx::gated_delta_rule),
          .executorch = direct("llama::gated_delta_rule.out"),
          .samples =
              "f32[1, 2, a, 4], f32[1, 2, a, 4], f32[1, 2, a, 6], f32[1, 2, a], f32[1, 2, "
              "a], f32[1, 2, 4, 6]; f32[a, 2, 1, 4], f32[a, 2, 1, 4], f32[a, 2, 1, 6], "
              "f32[a, 2, 1], f32[a, 2, 1], f32[a, 2, 4, 6]; f32[1, 2, a, 4], f32[1, 2, a, 4], "
              "f32[1, 2, a, 6], f32[1, 2, a, 4], f32[1, 2, a], f32[1, 2, 4, 6]"},
    // onnxruntime's own, with keys and values in the form of torch's attention. `attention_mask`
    // has a one for each token so far, the new ones included; cos and sin are [positions, pairs].
    // With `mask` all columns of the cache are kept, padding too, and it hides what is to be
    // hidden; `looks_ahead` where that may be less than what comes after a query.
    OpDef{
        .name = "modelport.group_query_attention",
        .schema =
            "(Tensor query, Tensor key, Tensor value, Tensor past_key, Tensor past_value, "
            "Tensor attention_mask, Tensor? cos=None, Tensor? sin=None, Tensor? "
            "sinks=None, Tensor? mask=None, *, float? scale=None, int? window=None, float? "
            "cap=None, bool interleaved=False, bool looks_ahead=False) -> (Tensor, Tensor, Tensor)",
        .infer = group_query_attention,
        .onnx = custom(onnx::group_query_attention),
        .executorch = refuse("it is for onnxruntime"),
        .samples = "f32[a, 4, b, 16], f32[a, 2, b, 16], f32[a, 2, b, 16], f32[a, 2, c, 16], "
                   "f32[a, 2, c, 16], i64[a, d]"},
    // What modelport.gated_delta_rule computes, by onnxruntime's own operator.
    OpDef{.name = "modelport.linear_attention",
          .schema = "(Tensor query, Tensor key, Tensor value, Tensor decay, Tensor beta, Tensor "
                    "initial_state) -> (Tensor, Tensor)",
          .infer = gated_delta_rule,
          .onnx = custom(onnx::linear_attention),
          .executorch = refuse("it is for onnxruntime"),
          .samples = "f32[1, 2, a, 4], f32[1, 2, a, 4], f32[1, 2, a, 6], f32[1, 2, a], f32[1, 2, "
                     "a], f32[1, 2, 4, 6]; f32[1, 2, a, 4], f32[1, 2, a, 4], f32[1, 2, a, 6], "
                     "f32[1, 2, a, 4], f32[1, 2, a], f32[1, 2, 4, 6]"},
    OpDef{.name = "modelport.tokens_come_first",
          .schema = "(Tensor attention_mask, SymInt tokens) -> Tensor",
          .infer = tokens_come_first,
          .onnx = custom(onnx::tokens_come_first),
          .executorch = refuse("it is for onnxruntime"),
          .samples = "i64[a, 5], 3"},
    OpDef{.name = "modelport.update_cache",
          .schema = "(Tensor value, Tensor cache, SymInt start_pos) -> Tensor",
          .infer = updated_cache,
          .onnx = refuse("it is for caches of ExecuTorch programs"),
          .executorch = direct("llama::update_cache.out"),
          .samples = "f32[1, a, 2, 4], f32[1, 16, 2, 4], 3"},
    // What transformers registers for experts where torch's own kernel does not run.
    OpDef{.name = "transformers.grouped_mm_fallback",
          .schema = "(Tensor input, Tensor weight, Tensor offs) -> Tensor",
          .infer = grouped_rows,
          .onnx = decompose(as_grouped_mm),
          .executorch = decompose(as_grouped_mm),
          .samples = "f32[a, 16], f32[2, 16, 8], i32<1>[2]; f32[a, 3], f32[2, 3, 5], i32<1>[2]"},
};
static_assert(first_bad_row(kAttentionOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> attention_ops() { return kAttentionOps; }

}  // namespace modelport::ops