// The last token of each row on graphs of ONNX operators in text form: what is computed for it
// alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

struct Model {
  std::string_view nodes;
  std::string_view outputs = "logits = %9";
  std::string_view mask = "%attention_mask: i64[b, t]";
};

std::string kept(const Model& model) {
  constexpr std::string_view kText = R"(graph g(%x: f32[b, s, 8], {})
  where b in 1.. = 2, s in 1.. = 3, t in 1.. = 4
  weights @norm: f32[8], @up: f32[16, 8], @down: f32[8, 16], @head: f32[90, 8]
{{
{}
  return {}
}}
)";
  FusionContext context;
  ir::Graph graph = ir::parse_graph(fmt::format(kText, model.mask, model.nodes, model.outputs));
  keep_last_tokens(graph, context);
  ir::verify(graph);
  return ir::print(graph);
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

int count(const std::string& text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// Something that mixes tokens, a sum, a norm and the head.
constexpr std::string_view kHead =
    "  %1 = com.microsoft.GroupQueryAttention(inputs=[%x, %x, %x]) : f32[b, s, 8]\n"
    "  %2, %3 = com.microsoft.SkipSimplifiedLayerNormalization(inputs=[%x, %1, @norm]) : "
    "f32[b, s, 8], f32[b, s, 8]\n"
    "  %9 = com.microsoft.FusedMatMul(inputs=[%2, @head], transB=1) : f32[b, s, 90]";

}  // namespace

TEST_CASE("what the logits alone are made from is computed for the last token of each row") {
  const std::string found = kept({.nodes = kHead});
  CHECK(has(found, "transB=1) : f32[b, 1, 90]"));
  CHECK(has(found, "SkipSimplifiedLayerNormalization"));
  CHECK(has(found, ": f32[b, 1, 8], f32[b, 1, 8]"));
  CHECK(has(found, "com.microsoft.GroupQueryAttention(inputs=[%x, %x, %x]) : f32[b, s, 8]"));
  CHECK(count(found, "onnx.GatherND") == 2);  // of both operands of the sum
}

TEST_CASE("the last token is where the mask has its last one, and a flag brings the others back") {
  const std::string found = kept({.nodes = kHead});
  CHECK(has(found, "onnx.Slice(inputs=[%attention_mask"));
  CHECK(has(found, "select_last_index=1) : i64[b, 1]"));
  CHECK(has(found, "name=\"modelport.all_logits\""));
}

TEST_CASE("what is an output as well is computed for all tokens") {
  const std::string found = kept({.nodes = kHead, .outputs = "logits = %9, hidden = %2"});
  CHECK(has(found, "transB=1) : f32[b, 1, 90]"));
  CHECK(has(found, ": f32[b, s, 8], f32[b, s, 8]"));
  CHECK(count(found, "onnx.GatherND") == 1);
}

TEST_CASE("a sum with what differs from token to token, and is no row of them, stays whole") {
  const std::string found = kept(
      {.nodes = "  %1 = onnx.Add(inputs=[%x, %places]) : f32[b, s, 8]\n"
                "  %9 = com.microsoft.FusedMatMul(inputs=[%1, @head], transB=1) : f32[b, s, 90]",
       .mask = "%attention_mask: i64[b, t], %places: f32[s, 8]"});
  CHECK(has(found, "onnx.Add(inputs=[%x, %places]) : f32[b, s, 8]"));
  CHECK(has(found, "transB=1) : f32[b, 1, 90]"));
}

TEST_CASE("a softmax over tokens, and what is cast into other rows, stay whole") {
  for (const std::string_view mixing :
       {"onnx.Softmax(inputs=[%x], axis=1)", "onnx.Reshape(inputs=[%x, %7])"}) {
    const std::string nodes = fmt::format(
        "  %7 = onnx.Constant(dtype=i64, shape=[3], values=[0, -1, 8]) : i64[3]\n"
        "  %1 = {} : f32[b, s, 8]\n"
        "  %9 = com.microsoft.FusedMatMul(inputs=[%1, @head], transB=1) : f32[b, s, 90]",
        mixing);
    const std::string found = kept({.nodes = nodes});
    CHECK(count(found, ": f32[b, 1, 8]") == 1);  // what is taken of it
    CHECK(has(found, ": f32[b, 1, 90]"));
  }
}

TEST_CASE("logits that no product makes stay as they are") {
  const std::string found = kept({.nodes = "  %9 = onnx.Tanh(inputs=[%x]) : f32[b, s, 8]"});
  CHECK(has(found, "onnx.Tanh(inputs=[%x]) : f32[b, s, 8]"));
}

TEST_CASE("without a mask nobody knows the last token of a row") {
  const std::string found = kept({.nodes = kHead, .mask = "%other: i64[b, t]"});
  CHECK(has(found, "transB=1) : f32[b, s, 90]"));
}

}  // namespace modelport::passes
