// Decompositions: calls of other rows with operands of every kind.
#include "ops/emit/emitter.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ops/executorch/lower.h"
#include "ops/onnx/lower.h"

namespace modelport::ops::emit {
namespace {

/// The rows that a cell of `aten.silu` calls, as nodes of the target.
template <class Target, class... Settings>
std::string lowered(Decompose cell, Settings... settings) {
  ir::Graph graph = ir::parse_graph("graph g(%x: f32[a, 4])\n  where a in 1.. = 2\n{\n}\n");
  shape::Dims dims;
  dims.declare("a", 2, {1, shape::Range::kUnbounded});
  OpDef row = *find_op("aten.silu");
  row.onnx = cell;
  row.executorch = cell;
  Target target(graph, dims, settings...);
  const std::vector<ir::NamedArg> args{{"self", {graph.inputs[0]}}};
  const std::vector<ir::Type> types{graph.value(graph.inputs[0]).type};
  graph.outputs.push_back({"y", {target.lower(row, args, types, {})[0]}});
  const std::string text = ir::print(graph);
  const std::size_t body = text.find("{\n");
  return text.substr(body + 2, text.find("  return") - body - 2);
}

std::string kernels(Decompose cell) { return lowered<executorch::Lower>(cell); }

Value silu(Emitter& e) {
  return e.call("aten.mul.Tensor", {e.arg("self"), e.call("aten.sigmoid", {e.arg("self")})});
}

}  // namespace

TEST_CASE("a decomposition serves every target") {
  CHECK(kernels(decompose(silu)) ==
        "  %1 = et.aten.sigmoid.out(self=%x) : f32[a, 4]\n"
        "  %2 = et.aten.mul.out(self=%x, other=%1) : f32[a, 4]\n");
  CHECK(lowered<onnx::Lower>(decompose(silu), onnx::Lower::Settings{}) ==
        "  %1 = onnx.Sigmoid(inputs=[%x]) : f32[a, 4]\n"
        "  %2 = onnx.Mul(inputs=[%x, %1]) : f32[a, 4]\n");
}

TEST_CASE("operands are values, numbers, lists, sizes, and what has a name") {
  const auto normed = [](Emitter& e) -> Values {
    const Value x = e.tensor("self");
    const Value sum = e.call("aten.sum.dim_IntList", {x, {-1}}, {{"keepdim", true}});
    const Value grown = e.call("aten.expand", {sum, e.shape(x)});
    return {e.call("aten.mul.Scalar", {grown, 0.5})};
  };
  CHECK(kernels(decompose(+normed)) ==
        "  %1 = et.aten.sum.IntList_out(self=%x, dim=[-1], keepdim=true, dtype=None) : f32[a, 1]\n"
        "  %2 = et.aten.expand_copy.out(self=%1, size=[a, 4], implicit=false) : f32[a, 4]\n"
        "  %3 = et.aten.mul.Scalar_out(self=%2, other=0.5) : f32[a, 4]\n");
}

TEST_CASE("a call that its row cannot take is our own error") {
  const auto too_many = [](Emitter& e) { return e.call("aten.sin", {e.arg("self"), 1}); };
  const auto misnamed = [](Emitter& e) {
    return e.call("aten.sin", {e.arg("self")}, {{"dim", 1}});
  };
  const auto no_row = [](Emitter& e) { return e.call("aten.no_such_row", {e.arg("self")}); };
  CHECK_THROWS_AS(kernels(decompose(+too_many)), InternalError);
  CHECK_THROWS_AS(kernels(decompose(+misnamed)), InternalError);
  CHECK_THROWS_AS(kernels(decompose(+no_row)), InternalError);
}

TEST_CASE("a decomposition into what the target has no way for names that row") {
  const auto bessel = [](Emitter& e) { return e.call("aten.special_bessel_j0", {e.arg("self")}); };
  try {
    kernels(decompose(+bessel));
    FAIL("it was lowered");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics()[0].what.starts_with(
        "executorch has no rule for aten.special_bessel_j0: "));
  }
}

}  // namespace modelport::ops::emit
