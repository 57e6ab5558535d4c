// Captured graphs in ONNX's operators: how sizes are found, and what is refused.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/onnx_pipeline.h"

namespace modelport::passes {
namespace {

std::string lowered(const std::string& text, int opset = 23) {
  const ir::Graph graph = to_onnx(ir::parse_graph(text), {.opset = opset});
  ir::verify(graph);
  const std::string printed = ir::print(graph);
  const std::size_t body = printed.find("{\n");
  return printed.substr(body + 2, printed.find("  return") - body - 2);
}

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("a reshape that keeps its sizes needs none of them") {
  CHECK(lowered("graph g(%x: f32[b, s, 64])\n  where b in 1.. = 2, s in 1.. = 3\n{\n"
                "  %1 = aten.view(self=%x, size=[b, s, 4, 16]) : f32[b, s, 4, 16]\n"
                "  return y = %1\n}\n") ==
        "  %1 = onnx.Constant(dtype=i64, shape=[4], values=[0, 0, 4, 16]) : i64[4]\n"
        "  %2 = onnx.Reshape(inputs=[%x, %1]) : f32[b, s, 4, 16]\n");
}

TEST_CASE("an expanded axis is asked for by its size, kept ones by 1") {
  CHECK(lowered("graph g(%x: f32[b, 2, 1, s])\n  where b in 1.. = 2, s in 1.. = 3\n{\n"
                "  %1 = aten.expand(self=%x, size=[b, 2, 3, s]) : f32[b, 2, 3, s]\n"
                "  return y = %1\n}\n") ==
        "  %1 = onnx.Constant(dtype=i64, shape=[4], values=[1, 1, 3, 1]) : i64[4]\n"
        "  %2 = onnx.Expand(inputs=[%x, %1]) : f32[b, 2, 3, s]\n");
}

TEST_CASE("a size is computed once however often it is used") {
  const std::string text = lowered(
      "graph g(%x: f32[b, s])\n  where b in 1.. = 2, s in 1.. = 3\n{\n"
      "  %1 = aten.zeros(size=[b*s + 1]) : f32[b*s + 1]\n  %2 = aten.ones(size=[b*s + 1]) : "
      "f32[b*s + 1]\n"
      "  %3 = aten.arange(end=b*s + 1) : i64[b*s + 1]\n  return y = %1, z = %2, w = %3\n}\n");
  CHECK(count(text, "onnx.Mul") == 1);
  CHECK(count(text, "onnx.Shape") <= 2);
}

TEST_CASE("a number read from a tensor is the value of its symbol") {
  const std::string text = lowered(
      "graph g(%n: i64[])\n  where u0 in 0.. = 4 from data\n{\n"
      "  %1 = aten.item(self=%n) : int u0\n  %2 = aten.zeros(size=[u0]) : f32[u0]\n  return y = "
      "%2\n}\n");
  CHECK(count(text, "onnx.Expand") + count(text, "onnx.ConstantOfShape") == 1);
  CHECK(text.find("%n") != std::string::npos);
}

TEST_CASE("newer operators are taken apart below their opset") {
  const std::string graph =
      "graph g(%x: f32[a, 8])\n  where a in 1.. = 2\n  weights @w: f32[8]\n{\n"
      "  %1 = aten.rms_norm(input=%x, normalized_shape=[8], weight=@w, eps=1e-05) : f32[a, 8]\n"
      "  return y = %1\n}\n";
  CHECK(count(lowered(graph, 23), "onnx.RMSNormalization") == 1);
  CHECK(count(lowered(graph, 22), "onnx.RMSNormalization") == 0);
}

TEST_CASE("every operator without a rule is listed, with the model's line") {
  try {
    lowered(
        "graph g(%x: f32[a])\n  where a in 1.. = 2\n{\n"
        "  %1 = aten.special_bessel_j0(self=%x) : f32[a]  # m.py:3 in M.forward, m\n"
        "  %2 = aten.igamma(self=%1, other=%1) : f32[a]  # m.py:4 in M.forward, m\n"
        "  %3 = custom.thing(x=%2) : f32[a]  # m.py:5 in M.forward, m\n  return y = %3\n}\n");
    FAIL("it was lowered");
  } catch (const ExportError& error) {
    REQUIRE(error.diagnostics().size() == 3);
    CHECK(error.diagnostics()[0].what.find("Bessel") != std::string::npos);
    CHECK(error.diagnostics()[1].where.line == 4);
    CHECK(error.diagnostics()[2].what.find("no row") != std::string::npos);
  }
}

TEST_CASE("complex numbers are pairs of reals in what is written, weights included") {
  const std::string text = lowered(
      "graph g(%x: c64[a, 4])\n  where a in 1.. = 2\n  weights @w: c64[4]\n{\n"
      "  %1 = aten.mul.Tensor(self=%x, other=@w) : c64[a, 4]\n  return y = %1\n}\n");
  CHECK(count(text, "c64") == 0);
  CHECK(count(text, "@w") >= 1);
  CHECK(count(text, "f32[a, 4, 2]") >= 1);
}

}  // namespace modelport::passes
