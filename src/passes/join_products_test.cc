// Products of one tensor on graphs of ONNX operators in text form: which become one, and which not.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

/// Nodes beside an attention on a cache, which makes the graph one that decodes.
struct Decoder {
  std::string_view weights, nodes, outputs;
  std::string_view attention = "com.microsoft.GroupQueryAttention";
};

std::string joined(const Decoder& decoder) {
  constexpr std::string_view kText = R"(graph g(%x: f32[b, s, 32])
  where b in 1.. = 2, s in 1.. = 3
  weights {}
{{
{}
  %90 = {}(inputs=[%x, %x, %x]) : f32[b, s, 32]
  return {}, attention = %90
}}
)";
  FusionContext context;
  ir::Graph graph = ir::parse_graph(
      fmt::format(kText, decoder.weights, decoder.nodes, decoder.attention, decoder.outputs));
  join_products(graph, context);
  ir::verify(graph);
  return ir::print(graph);
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

constexpr Decoder kPlain{.weights = "@q.weight: f32[8, 32], @k.weight: f32[4, 32]",
                         .nodes =
                             "  %1 = onnx.Transpose(inputs=[@q.weight], perm=[1, 0]) : f32[32, 8]\n"
                             "  %2 = onnx.MatMul(inputs=[%x, %1]) : f32[b, s, 8]\n"
                             "  %3 = onnx.Transpose(inputs=[@k.weight], perm=[1, 0]) : f32[32, 4]\n"
                             "  %4 = onnx.MatMul(inputs=[%x, %3]) : f32[b, s, 4]",
                         .outputs = "q = %2, k = %4"};

/// Codes and scales of two weights, the second ones made after the first product.
constexpr std::string_view kFewBits =
    "  %1, %2 = modelport.quantized(weight=@q) : u8[8, 1, 16], f32[8, 1]\n"
    "  %3 = com.microsoft.MatMulNBits(inputs=[%x, %1, %2], K=32, N=8, bits=4, block_size=32) : "
    "f32[b, s, 8]\n"
    "  %4, %5 = modelport.quantized(weight=@k) : u8[4, 1, 16], f32[4, 1]\n"
    "  %6 = com.microsoft.MatMulNBits(inputs=[%x, %4, %5], K=32, N=4, bits=4, block_size={}) : "
    "f32[b, s, 4]";

std::string few_bits(int block, std::string_view outputs) {
  const std::string nodes = fmt::format(kFewBits, block);
  return joined({.weights = "@q: f32[8, 32], @k: f32[4, 32]", .nodes = nodes, .outputs = outputs});
}

}  // namespace

TEST_CASE("products of one tensor are one product, and its columns are parted after it") {
  const std::string found = joined(kPlain);
  CHECK(has(found, "modelport.joined(inputs=[@q.weight, @k.weight]) : f32[12, 32]"));
  CHECK(has(found, "transB=1) : f32[b, s, 12]"));
  CHECK(has(found, "axis=-1) : f32[b, s, 8], f32[b, s, 4]"));
  CHECK(has(found, "values=[8, 4]"));
  CHECK_FALSE(has(found, "onnx.MatMul"));
  CHECK_FALSE(has(found, "onnx.Transpose"));
}

TEST_CASE("large products stay as they are, unless a small one is among them") {
  constexpr std::string_view kProducts =
      "  %1 = onnx.Transpose(inputs=[@a], perm=[1, 0]) : f32[32, 65536]\n"
      "  %2 = onnx.MatMul(inputs=[%x, %1]) : f32[b, s, 65536]\n"
      "  %3 = onnx.Transpose(inputs=[@b], perm=[1, 0]) : f32[32, {0}]\n"
      "  %4 = onnx.MatMul(inputs=[%x, %3]) : f32[b, s, {0}]";
  const auto with_rows = [&](int rows) {
    return joined({.weights = fmt::format("@a: f32[65536, 32], @b: f32[{}, 32]", rows),
                   .nodes = fmt::format(kProducts, rows),
                   .outputs = "a = %2, b = %4"});
  };
  CHECK_FALSE(has(with_rows(65536), "modelport.joined"));
  CHECK(has(with_rows(65535), "modelport.joined"));
}

TEST_CASE("codes are joined with codes and scales with scales") {
  const std::string found = few_bits(32, "q = %3, k = %6");
  CHECK(has(found, ": u8[12, 1, 16]"));
  CHECK(has(found, ": f32[12, 1]"));
  CHECK(has(found, "K=32, N=12, bits=4, block_size=32) : f32[b, s, 12]"));
  CHECK(has(found, ": f32[b, s, 8], f32[b, s, 4]"));
}

TEST_CASE("products of other blocks stay apart") {
  const std::string found = few_bits(64, "q = %3, k = %6");
  CHECK(has(found, "block_size=64"));
  CHECK_FALSE(has(found, "modelport.joined"));
}

TEST_CASE("a weight that something else reads as well stays apart, or it would be stored twice") {
  CHECK_FALSE(has(few_bits(32, "q = %3, k = %6, scales = %5"), "modelport.joined"));
}

TEST_CASE("biases of all of them are one bias") {
  Decoder decoder = kPlain;
  const std::string nodes = fmt::format(
      "{}\n  %5 = onnx.Add(inputs=[%2, @q.bias]) : f32[b, s, 8]\n"
      "  %6 = onnx.Add(inputs=[@k.bias, %4]) : f32[b, s, 4]",
      kPlain.nodes);
  decoder.weights =
      "@q.weight: f32[8, 32], @k.weight: f32[4, 32], @q.bias: f32[8], @k.bias: f32[4]";
  decoder.nodes = nodes;
  decoder.outputs = "q = %5, k = %6";
  const std::string found = joined(decoder);
  CHECK(has(found, "modelport.joined(inputs=[@q.bias, @k.bias]) : f32[12]"));
  CHECK(has(found, ": f32[b, s, 8], f32[b, s, 4]"));
  CHECK(found.find("onnx.Add") == found.rfind("onnx.Add"));
}

TEST_CASE("a bias that one of them has is added to it alone") {
  Decoder decoder = kPlain;
  const std::string nodes =
      fmt::format("{}\n  %5 = onnx.Add(inputs=[%2, @q.bias]) : f32[b, s, 8]", kPlain.nodes);
  decoder.weights = "@q.weight: f32[8, 32], @k.weight: f32[4, 32], @q.bias: f32[8]";
  decoder.nodes = nodes;
  decoder.outputs = "q = %5, k = %4";
  const std::string found = joined(decoder);
  CHECK(has(found, "modelport.joined(inputs=[@q.weight, @k.weight])"));
  CHECK(has(found, "@q.bias]) : f32[b, s, 8]"));
}

TEST_CASE("a graph that reads whole texts keeps its products apart") {
  Decoder decoder = kPlain;
  decoder.attention = "com.microsoft.MultiHeadAttention";
  CHECK_FALSE(has(joined(decoder), "modelport.joined"));
}

}  // namespace modelport::passes
