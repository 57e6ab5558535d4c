// Captured graphs as calls of ExecuTorch's kernels.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/table/sample.h"
#include "passes/lower.h"

namespace modelport::passes {
namespace {

std::string lowered(const std::string& text) {
  const ir::Graph graph = lower_to(ExecutorchTarget{}, ir::parse_graph(text));
  ir::verify(graph);
  const std::string printed = ir::print(graph);
  CHECK(ir::print(ir::parse_graph(printed)) == printed);
  const std::size_t body = printed.find("{\n");
  return printed.substr(body + 2, printed.find("\n}") - body - 1);
}

/// A program that is one call of a row.
ir::Graph program_of(const ops::OpDef& op, ops::Sample& sample) {
  std::vector<ir::Type> types = sample.infer(op);
  ir::Graph graph = sample.graph;
  for (const shape::Dim& dim : sample.dims.all()) {
    if (!sample.dims.replacements().contains(dim.name)) graph.dims.push_back(dim);
  }
  const ir::NodeId node = graph.add_node(std::string(op.name), sample.args, std::move(types));
  for (std::size_t i = 0; i < graph.node(node).results.size(); ++i)
    graph.outputs.push_back({"y" + std::to_string(i), {graph.node(node).results[i]}});
  graph.substitute(sample.dims.replacements());
  return graph;
}

}  // namespace

TEST_CASE("every sample of a row that has a way becomes kernels with the types of the row") {
  for (const ops::OpDef* op : ops::all_ops()) {
    for (ops::Sample& sample : ops::samples_of(*op, ops::sample_sizes(*op)[0])) {
      CAPTURE(op->name);
      CAPTURE(sample.text);
      const ir::Graph program = program_of(*op, sample);
      try {
        const ir::Graph graph = lower_to(ExecutorchTarget{}, program);
        CHECK_NOTHROW(ir::verify(graph));
        for (const ir::Node& node : graph.nodes()) CHECK(node.op.starts_with("et."));
      } catch (const ExportError& error) {
        CHECK(error.diagnostics()[0].what.starts_with("executorch has no rule for "));
      }
    }
  }
}

TEST_CASE("a node is the kernel of its row, with every argument in the schema's order") {
  CHECK(lowered("graph g(%x: f32[a, 4])\n  where a in 1.. = 2\n  weights @w: f32[4]\n{\n"
                "  %1 = aten.add.Tensor(self=%x, other=@w) : f32[a, 4]\n"
                "  %2 = aten.sum.dim_IntList(self=%1, dim=[-1], keepdim=true) : f32[a, 1]\n"
                "  return y = %2\n}\n") ==
        "  %1 = et.aten.add.out(self=%x, other=@w, alpha=1) : f32[a, 4]\n"
        "  %2 = et.aten.sum.IntList_out(self=%1, dim=[-1], keepdim=true, dtype=None) : f32[a, 1]\n"
        "  return y = %2\n");
}

TEST_CASE("sizes stay symbolic, and what a kernel sees in its result is no argument") {
  CHECK(lowered("graph g(%x: f32[a, 4])\n  where a in 1.. = 2\n{\n"
                "  %1 = aten.view(self=%x, size=[4*a]) : f32[4*a]\n"
                "  %2 = aten.zeros(size=[a + 1], dtype=i64) : i64[a + 1]\n"
                "  return y = %1, z = %2, n = 4*a\n}\n") ==
        "  %1 = et.view(self=%x, size=[4*a]) : f32[4*a]\n"
        "  %2 = et.aten.zeros.out(size=[a + 1]) : i64[a + 1]\n"
        "  return y = %1, z = %2, n = 4*a\n");
}

TEST_CASE("a decomposition is the kernels of the rows that it calls") {
  CHECK(lowered("graph g(%x: f32[a, 4])\n  where a in 1.. = 2\n{\n"
                "  %1 = aten.arange.start(start=1, end=a, dtype=f32) : f32[a - 1]\n"
                "  %2 = aten.var(self=%x, unbiased=false) : f32[]\n"
                "  return y = %1, z = %2\n}\n") ==
        "  %1 = et.aten.arange.start_out(start=1, end=a, step=1) : f32[a - 1]\n"
        "  %2 = et.aten.var.out(self=%x, dim=None, unbiased=false, keepdim=false) : f32[]\n"
        "  return y = %1, z = %2\n");
}

TEST_CASE("a number in a tensor's place is a constant of the type beside it") {
  CHECK(lowered("graph g(%x: f16[a], %n: i64[a])\n  where a in 1.. = 2\n{\n"
                "  %1 = aten.mul.Tensor(self=%x, other=2) : f16[a]\n"
                "  %2 = aten.mul.Tensor(self=%n, other=0.5) : f32[a]\n"
                "  %3 = aten.mul.Tensor(self=%n, other=a) : i64[a]\n"
                "  return y = %1, z = %2, w = %3\n}\n") ==
        "  %1 = et.constant(dtype=f16, shape=[], values=[2.0]) : f16[]\n"
        "  %2 = et.aten.mul.out(self=%x, other=%1) : f16[a]\n"
        "  %3 = et.constant(dtype=f32, shape=[], values=[0.5]) : f32[]\n"
        "  %4 = et.aten.mul.out(self=%n, other=%3) : f32[a]\n"
        "  %5 = et.aten.scalar_tensor.out(s=a) : i64[]\n"
        "  %6 = et.aten.mul.out(self=%n, other=%5) : i64[a]\n"
        "  return y = %2, z = %4, w = %6\n");
}

TEST_CASE("a number read from a tensor keeps its symbol") {
  CHECK(lowered("graph g(%n: i64[])\n  where u0 in 0.. = 4 from data\n{\n"
                "  %1 = aten.item(self=%n) : int u0\n"
                "  %2 = aten.full(size=[u0], fill_value=1.5) : f32[u0]\n  return y = %2\n}\n") ==
        "  %1 = et.aten._local_scalar_dense(self=%n) : int u0\n"
        "  %2 = et.aten.full.out(size=[u0], fill_value=1.5) : f32[u0]\n"
        "  return y = %2\n");
}

TEST_CASE("everything without a way is listed with row, reason and line") {
  try {
    lowered(
        "graph g(%x: f32[a])\n  where a in 1.. = 2\n{\n"
        "  %1 = aten.view.dtype(self=%x, dtype=i32) : i32[a]  # m.py:3 in M.forward, m\n"
        "  %2 = aten.special_bessel_j0(self=%1) : f32[a]  # m.py:4 in M.forward, m\n"
        "  %3 = aten.add.Tensor(self=%2, other=%2) : f32[a]  # m.py:5 in M.forward, m\n"
        "  %4 = custom.thing(x=%3) : f32[a]  # m.py:6 in M.forward, m\n  return y = %4\n}\n");
    FAIL("it was lowered");
  } catch (const ExportError& error) {
    const auto& found = error.diagnostics();
    REQUIRE(found.size() == 3);
    CHECK(found[0].what ==
          "executorch has no rule for aten.view.dtype: the runtime has no kernel that reads bits "
          "as another type");
    CHECK(found[1].what.find("aten.special_bessel_j0: the runtime has no Bessel functions") !=
          std::string::npos);
    CHECK(found[1].where.line == 4);
    CHECK(found[2].what.find("no row") != std::string::npos);
  }
}

TEST_CASE("complex numbers are pairs of reals: inputs, weights, results and what lies between") {
  const std::string text = lowered(
      "graph g(%x: c64[a, 4])\n  where a in 1.. = 2\n  weights @w: c64[4]\n{\n"
      "  %1 = aten.mul.Tensor(self=%x, other=@w) : c64[a, 4]\n"
      "  %2 = aten.unsqueeze(self=%1, dim=-1) : c64[a, 4, 1]\n  return y = %2\n}\n");
  CHECK(text.find("c64") == std::string::npos);
  CHECK(text.find("pairs.") == std::string::npos);
  CHECK(text.find("f32[a, 4, 1, 2]") != std::string::npos);
  CHECK_THROWS_AS(lowered("graph g(%x: c64[a])\n  where a in 1.. = 2\n{\n"
                          "  %1 = aten.exp(self=%x) : c64[a]\n  return y = %1\n}\n"),
                  ExportError);
}

}  // namespace modelport::passes
