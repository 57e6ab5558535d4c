// Operators of onnxruntime's own on graphs in text form: what becomes one of them, and what not.
#include "passes/runtime_fusions.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/onnx_pipeline.h"

namespace modelport::passes {
namespace {

struct Lowered {
  std::string text;
  std::vector<FusionNote> notes;

  bool has(std::string_view part) const { return text.find(part) != std::string::npos; }
};

Lowered lowered(const std::string& text, Operators operators = Operators::onnxruntime) {
  FusionContext context;
  const ir::Graph graph =
      to_onnx(ir::parse_graph(text), {.opset = 23, .operators = operators}, context);
  ir::verify(graph);
  return {ir::print(graph), context.notes};
}

struct Layer {
  std::string_view arguments = "scale=0.5";
  std::string_view key_heads = "4";
  std::string_view dtype = "f32";
  std::string_view returned = "y = %12";
  std::string_view most_tokens = "";
};

/// Heads parted from the channels of three inputs, attention, and the heads joined again.
std::string encoder(const Layer& layer = {}) {
  constexpr std::string_view kText =
      R"(graph g(%q: {0}[b, s, 64], %k: {0}[b, s, {1}*16], %v: {0}[b, s, {1}*16], %m: bool[b, 1, s, s])
  where b in 1.. = 2, s in 1..{4} = 3
{{
  %1 = aten.view(self=%q, size=[b, s, 4, 16]) : {0}[b, s, 4, 16]
  %2 = aten.transpose.int(self=%1, dim0=1, dim1=2) : {0}[b, 4, s, 16]
  %3 = aten.view(self=%k, size=[b, s, {1}, 16]) : {0}[b, s, {1}, 16]
  %4 = aten.transpose.int(self=%3, dim0=1, dim1=2) : {0}[b, {1}, s, 16]
  %5 = aten.view(self=%v, size=[b, s, {1}, 16]) : {0}[b, s, {1}, 16]
  %6 = aten.transpose.int(self=%5, dim0=1, dim1=2) : {0}[b, {1}, s, 16]
  %10 = aten.scaled_dot_product_attention(query=%2, key=%4, value=%6, {2}) : {0}[b, 4, s, 16]
  %11 = aten.transpose.int(self=%10, dim0=1, dim1=2) : {0}[b, s, 4, 16]
  %12 = aten.reshape(self=%11, shape=[b, s, 64]) : {0}[b, s, 64]
  return {3}
}}
)";
  return fmt::format(kText, layer.dtype, layer.key_heads, layer.arguments, layer.returned,
                     layer.most_tokens);
}

/// Why the only attention stayed as it is; empty where it did not.
std::string objection(const Layer& layer) {
  const Lowered found = lowered(encoder(layer));
  REQUIRE(found.notes.size() == 1);
  CHECK(found.has("com.microsoft.MultiHeadAttention") == found.notes[0].objection.empty());
  return found.notes[0].objection;
}

std::string residual(std::string_view other, std::string_view norm) {
  constexpr std::string_view kText = R"(graph g(%x: f32[b, s, 8], %r: f32[{}])
  where b in 1.. = 2, s in 1.. = 3
  weights @w: f32[8], @c: f32[8]
{{
  %1 = aten.add.Tensor(self=%x, other=%r) : f32[b, s, 8]
  %2 = {} : f32[b, s, 8]
  return sum = %1, y = %2
}}
)";
  return fmt::format(kText, other, norm);
}

constexpr std::string_view kLayerNorm =
    "aten.layer_norm(input=%1, normalized_shape=[8], weight=@w, bias=@c)";

}  // namespace

TEST_CASE("attention without a mask takes heads side by side, and nothing is turned") {
  const Lowered found = lowered(encoder());
  CHECK(
      found.has("com.microsoft.MultiHeadAttention(inputs=[%q, %k, %v], num_heads=4, scale=0.5) "
                ": f32[b, s, 64]"));
  CHECK_FALSE(found.has("onnx."));
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].fusion == "attention on heads side by side");
  CHECK(found.notes[0].objection.empty());
}

TEST_CASE("of many tokens, and of any number, onnxruntime's own attention is the quicker one") {
  CHECK(lowered(encoder({.most_tokens = "769"})).has("com.microsoft.MultiHeadAttention"));
}

TEST_CASE("the scale that attention has by itself is left to the kernel") {
  CHECK(lowered(encoder({.arguments = "dropout_p=0.0"}))
            .has("com.microsoft.MultiHeadAttention(inputs=[%q, %k, %v], num_heads=4) "));
}

TEST_CASE("standard operators keep attention as ONNX has it") {
  const Lowered found = lowered(encoder(), Operators::standard);
  CHECK(found.has("onnx.Attention"));
  CHECK_FALSE(found.has("com.microsoft"));
  CHECK(found.notes.empty());
}

TEST_CASE(
    "what onnxruntime's own attention computes otherwise or slower stays ONNX's, and turns "
    "nothing") {
  const auto taken = [](const Layer& layer, std::string_view call) {
    const Lowered found = lowered(encoder(layer));
    CHECK(found.has(call));
    CHECK_FALSE(found.has("com.microsoft"));
    CHECK_FALSE(found.has("onnx.Transpose"));
    REQUIRE(found.notes.size() == 1);
    CHECK(found.notes[0].objection.empty());
  };
  taken({.arguments = "attn_mask=%m"}, "%m], q_num_heads=4, kv_num_heads=4) ");
  taken({.arguments = "is_causal=true"},
        "onnx.Attention(inputs=[%q, %k, %v], q_num_heads=4, kv_num_heads=4, is_causal=1) ");
  taken({.arguments = "enable_gqa=true", .key_heads = "2"},
        "onnx.Attention(inputs=[%q, %k, %v], q_num_heads=4, kv_num_heads=2) ");
  taken({.most_tokens = "768"}, "q_num_heads=4, kv_num_heads=4, scale=0.5) : f32[b, s, 64]");
  taken({.dtype = "f64"}, "q_num_heads=4, kv_num_heads=4, scale=0.5) : f64[b, s, 64]");
}

TEST_CASE("heads that something else wants as they are stay turned, and that is told of") {
  CHECK(objection({.returned = "y = %12, heads = %10"}) == "its heads are not joined after it");
  CHECK(objection({.returned = "y = %12, heads = %11"}) == "its heads are not joined after it");
}

TEST_CASE("a sum and its layer norm stay a kernel each in f32, which onnxruntime does not undo") {
  const Lowered found = lowered(residual("b, s, 8", kLayerNorm));
  CHECK(found.has("onnx.LayerNormalization(inputs=[%1, @w, @c]"));  // the sum is an output, too
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].fusion == "sum and norm");
  CHECK(found.notes[0].objection == "a kernel for each is quicker");

  std::string text = residual("b, s, 8", kLayerNorm);
  text.replace(text.find("sum = %1, "), 10, "");
  const Lowered alone = lowered(text);
  CHECK(alone.has("onnx.Unsqueeze(inputs=[@w, %2]) : f32[1, 8]"));
  CHECK(alone.has("onnx.LayerNormalization(inputs=[%1, %3, @c]"));
  CHECK_FALSE(alone.has("com.microsoft"));
}

TEST_CASE("a sum and the norm of it are one node that gives both") {
  std::string text = residual("b, s, 8", kLayerNorm);
  for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos;)
    text.replace(at, 3, "f16");
  const Lowered found = lowered(text);
  CHECK(found.has("com.microsoft.SkipLayerNormalization(inputs=[%x, %r, @w, @c]"));
  CHECK_FALSE(found.has("onnx.Add"));
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].fusion == "sum and norm");
}

TEST_CASE("a product with a weight as it is stored takes its tensor with all its axes") {
  const std::string text =
      "graph g(%i: i64[b, s])\n  where b in 1.. = 2, s in 1.. = 3\n  weights @w: f32[9, 4]\n{\n"
      "  %1 = aten.embedding(weight=@w, indices=%i) : f32[b, s, 4]\n"
      "  %2 = aten.linear(input=%1, weight=@w) : f32[b, s, 9]\n  return y = %2\n}\n";
  const Lowered found = lowered(text);
  CHECK(found.has("com.microsoft.FusedMatMul(inputs=[%1, @w], transB=1) : f32[b, s, 9]"));
  for (const char* left : {"onnx.Gemm", "onnx.Reshape", "onnx.Shape"}) CHECK_FALSE(found.has(left));
  REQUIRE(found.notes.size() == 1);
  CHECK(found.notes[0].fusion == "product as stored");
  CHECK(lowered(text, Operators::standard).has("onnx.Gemm"));
}

TEST_CASE("heads before and after such a product are axes of it") {
  const Lowered found = lowered(
      "graph g(%i: i64[b, s])\n  where b in 1.. = 2, s in 1.. = 3\n  weights @w: f32[6, 4]\n{\n"
      "  %1 = aten.embedding(weight=@w, indices=%i) : f32[b, s, 4]\n"
      "  %2 = aten.linear(input=%1, weight=@w) : f32[b, s, 6]\n"
      "  %3 = aten.view(self=%2, size=[b, s, 2, 3]) : f32[b, s, 2, 3]\n  return y = %3\n}\n");
  CHECK(found.has("com.microsoft.FusedMatMul(inputs=[%1, @w], transB=1) : f32[b, s, 6]"));
  CHECK(found.has("values=[0, 0, 2, 3]"));
  CHECK_FALSE(found.has("onnx.Shape"));
}

TEST_CASE("the norm by the root mean square of a sum is one node with it") {
  const Lowered found =
      lowered(residual("b, s, 8", "aten.rms_norm(input=%1, normalized_shape=[8], weight=@w)"));
  CHECK(found.has("com.microsoft.SkipSimplifiedLayerNormalization(inputs=[%x, %r, @w]"));
}

TEST_CASE("a sum that repeats an operand stays as it is") {
  CHECK_FALSE(lowered(residual("8", kLayerNorm)).has("com.microsoft"));
}

}  // namespace modelport::passes
