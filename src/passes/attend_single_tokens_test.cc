// Attention of single tokens on graphs of ONNX operators in text form: which branch does what.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

struct Attention {
  std::string_view attributes = "num_heads=4, kv_num_heads=2, scale=0.25";
  std::string_view dtype = "f32";
  std::string_view more_inputs = "";
  int layers = 1;
};

struct Changed {
  std::string text;
  std::vector<FusionNote> notes;

  bool has(std::string_view part) const { return text.find(part) != std::string::npos; }
  int count(std::string_view part) const {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }
};

Changed changed(const Attention& attention) {
  constexpr std::string_view kHead =
      "graph g(%q: {0}[b, s, 64], %k: {0}[b, s, 32], %v: {0}[b, s, 32], %pk: {0}[b, 2, c, 16], "
      "%pv: {0}[b, 2, c, 16], %last: i32[b], %total: i32[], %bias: {0}[b, 1, s, t])\n"
      "  where b in 1.. = 2, s in 1.. = 3, c in 1.. = 8, t in 1.. = 4\n"
      "  weights @sinks: {0}[4]\n{{\n";
  constexpr std::string_view kLayer =
      "  %a{3}, %b{3}, %c{3} = com.microsoft.GroupQueryAttention(inputs=[%{4}, %k, %v, %pk, %pv, "
      "%last, %total{1}], {2}) : {0}[b, s, 64], {0}[b, 2, c, 16], {0}[b, 2, c, 16]\n";
  std::string text = fmt::format(kHead, attention.dtype);
  for (int i = 0; i < attention.layers; ++i)
    text += fmt::format(kLayer, attention.dtype, attention.more_inputs, attention.attributes, i,
                        i == 0 ? "q" : fmt::format("a{}", i - 1));
  FusionContext context;
  ir::Graph graph = ir::parse_graph(
      text + "  return y = %a" + fmt::format("{}, k = %b0, v = %c0\n}}\n", attention.layers - 1));
  attend_single_tokens(graph, context);
  ir::verify(graph);
  return {ir::print(graph), context.notes};
}

}  // namespace

TEST_CASE("a token by itself has a scaled query, and sinks that add nothing") {
  const Changed found = changed({});
  INFO(found.text);
  CHECK(found.has("onnx.If(inputs=["));
  CHECK(
      found.has("then=[\"scaled = Mul(input_1, input_8)\", "
                "\"result_0, result_1, result_2 = com.microsoft.GroupQueryAttention(scaled, "
                "input_2, input_3, input_4, input_5, input_6, input_7, , , , , input_9) "
                "{num_heads=4, kv_num_heads=2, scale=1.0}\"]"));
  CHECK(found.has("values=[-inf, -inf, -inf, -inf]"));
  CHECK(found.notes.at(0).objection.empty());
}

TEST_CASE("several tokens attend as before") {
  CHECK(
      changed({}).has("else=[\"result_0, result_1, result_2 = "
                      "com.microsoft.GroupQueryAttention(input_1, input_2, input_3, input_4, "
                      "input_5, input_6, input_7) {num_heads=4, kv_num_heads=2, scale=0.25}\"]"));
}

TEST_CASE("without a scale it is that of the width of a head") {
  CHECK(changed({.attributes = "num_heads=4, kv_num_heads=2"}).has("scale=0.25}"));
}

TEST_CASE("a scale of one multiplies nothing") {
  const Changed found = changed({.attributes = "num_heads=4, kv_num_heads=2, scale=1.0"});
  CHECK_FALSE(found.has("Mul"));
  CHECK(found.has("then=[\"result_0, result_1, result_2 = "));
}

TEST_CASE("what is added to scores, and a window, go into both branches") {
  const Changed found =
      changed({.attributes = "num_heads=4, kv_num_heads=2, local_window_size=8, scale=0.25",
               .more_inputs = ", None, None, None, %bias"});
  INFO(found.text);
  CHECK(found.count("input_7, , , , input_11") == 2);
  CHECK(found.count("local_window_size=8") == 2);
}

TEST_CASE("layers ask once how many tokens there are") {
  const Changed found = changed({.layers = 3});
  CHECK(found.count("onnx.Equal") == 1);
  CHECK(found.count("onnx.Constant") == 3);
  CHECK(found.count("onnx.If") == 3);
}

TEST_CASE(
    "scores with a cap or sinks, or that look ahead, are of no blocks for any number of tokens") {
  for (const Attention& attention :
       {Attention{.attributes = "num_heads=4, kv_num_heads=2, scale=0.25, softcap=50.0"},
        Attention{.attributes = "num_heads=4, kv_num_heads=2, causal=0"},
        Attention{.more_inputs = ", None, None, None, None, @sinks"}}) {
    const Changed found = changed(attention);
    INFO(found.text);
    CHECK_FALSE(found.has("onnx.If"));
    CHECK(found.count("onnx.Mul(inputs=[%q, ") == 1);
    CHECK(found.has("scale=1.0) : f32[b, s, 64]"));
    CHECK(found.notes.at(0).objection.empty());
  }
}

TEST_CASE("fp16 stays as it is, and a note says why") {
  const Changed found = changed({.dtype = "f16"});
  CHECK_FALSE(found.has("onnx.If"));
  CHECK(found.has("scale=0.25"));
  CHECK(found.notes.at(0).objection == "the kernel has other products in this type");
}

}  // namespace modelport::passes
