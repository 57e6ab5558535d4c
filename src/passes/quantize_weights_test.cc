// Weights in few bits on graphs of ONNX operators in text form: which ones, and in how many.
#include "passes/quantize_weights.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kText = R"(graph g(%ids: i64[b, s])
  where b in 1.. = 2, s in 1.. = 3
  weights @words.weight: f32[64, 32], @one.weight: f32[48, 32], @two.weight: f32[64, 48], @bias: f32[64]
{
  %1 = onnx.Gather(inputs=[@words.weight, %ids], axis=0) : f32[b, s, 32]
  %2 = onnx.Transpose(inputs=[@one.weight], perm=[1, 0]) : f32[32, 48]
  %3 = onnx.MatMul(inputs=[%1, %2]) : f32[b, s, 48]
  %4 = onnx.Transpose(inputs=[@two.weight], perm=[1, 0]) : f32[48, 64]
  %5 = onnx.MatMul(inputs=[%3, %4]) : f32[b, s, 64]
  %6 = onnx.Add(inputs=[%5, @bias]) : f32[b, s, 64]
  return y = %6
}
)";

std::string quantized(const WeightQuantization& how) {
  FusionContext context;
  ir::Graph graph = ir::parse_graph(std::string(kText));
  (how.inputs == InputCodes::none ? quantize_weights : quantize_products)(graph, how, context);
  ir::verify(graph);
  return ir::print(graph);
}

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("products and embeddings take their weights in blocks of few bits") {
  const std::string found = quantized({.bits = 4, .block = 32});
  CHECK(has(found, "com.microsoft.GatherBlockQuantized"));
  CHECK(has(found, "K=32, N=48, bits=4, block_size=32"));
  CHECK(has(found, "K=48, N=64, bits=4, block_size=32"));
}

TEST_CASE("a layer has its own bits, and of none it stays in floats") {
  const std::string found = quantized({.layers = {{"one.weight", 8}, {"two.weight", 0}}});
  CHECK(has(found, "com.microsoft.GatherBlockQuantized"));
  CHECK(has(found, "K=32, N=48, bits=8, block_size=32"));
  CHECK(has(found, "onnx.MatMul(inputs=["));
  CHECK(!has(found, "K=48"));
  CHECK(!has(quantized({.layers = {{"words.weight", 0}}}), "GatherBlockQuantized"));
}

TEST_CASE("products of integers leave out the layers that stay in floats") {
  const std::string found =
      quantized({.bits = 8, .inputs = InputCodes::per_call, .layers = {{"two.weight", 0}}});
  CHECK(has(found, "onnx.MatMulInteger"));
  CHECK(has(found, "onnx.MatMul(inputs=["));
  CHECK(!has(quantized({.bits = 8, .inputs = InputCodes::per_call}), "onnx.MatMul(inputs=["));
}

}  // namespace
}  // namespace modelport::passes
