#include "ir/verify.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ir/text.h"

namespace modelport::ir {

namespace {

std::vector<std::string> problems(const Graph& graph) {
  std::vector<std::string> found;
  const Diagnostics all = violations(graph);
  for (const Diagnostic& diagnostic : all.all()) {
    CHECK(diagnostic.code == Code::bad_graph);
    found.push_back(diagnostic.what);
  }
  return found;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a sound graph has no violations") {
  const Graph graph = parse_graph(
      "graph g(%x: f32[n, 2])\n  where n in 1.. = 2, u0 in 0.. = 1 from data, n + u0 >= 2\n"
      "  weights @w: f32[2] buffer\n{\n  %1 = aten.item(self=%x) : int u0\n"
      "  %2 = aten.f(x=[@w, %1], n=u0) : f32[2]\n  %3 = aten.item(self=%x) : float u1\n"
      "  aten.f(x=real(u1))\n  assume %3 == 1.0\n  return y = %2, n = u0\n  mutate @w = %2\n}");
  CHECK(problems(graph) == Lines{});
  CHECK_NOTHROW(verify(graph));
}

TEST_CASE("all violations are reported at once, with the model's line") {
  const Graph graph = parse_graph(
      "graph g(%x: f32[n, -1])\n  where m in 3..1 = 0, m in 1.. = 0, u in 0.. = 0 from data, q > "
      "2\n"
      "  weights @w: f32[n], @c: f32[2] constant\n{\n"
      "  %1 = aten.f(a=%x, a=u, b=k, c=real(v)) : f32[zz]  # a.py:7 in f, layer\n"
      "  assume @c == 1.5  # a.py:8\n  return a = %1, a = %1\n  mutate @c = %1\n  mutate @c = "
      "%x\n}");
  CHECK(problems(graph) ==
        Lines{"dimension m has the empty range 3..1", "dimension m is declared twice",
              "input %x has a type with the undeclared symbol n: f32[n, -1]",
              "input %x has a negative size: f32[n, -1]",
              "weight @w has a type with the undeclared symbol n: f32[n]",
              "weight @w has no fixed sizes: f32[n]", "aten.f has the argument a twice",
              "aten.f mentions u, which no node above gives a value",
              "aten.f mentions the undeclared symbol k",
              "aten.f mentions v, which no node above gives a value",
              "aten.f has a type with the undeclared symbol zz: f32[zz]",
              "the guard q >= 3 mentions the undeclared symbol q", "output a is returned twice",
              "the new value of @c has no buffer to go to",
              "the new value of @c is f32[zz], not f32[2]", "the program writes @c twice",
              "the new value of @c has no buffer to go to",
              "the new value of @c is f32[n, -1], not f32[2]",
              "the assumption on @c is on more than one element: f32[2]"});
  const std::vector<Diagnostic> found = violations(graph).all();
  CHECK(found[6].where == SourceLine{"a.py", 7, "f"});
  CHECK(found[6].module_path == "layer");
  CHECK(found[6].notes == Lines{"node    %1 = aten.f(a=%x, a=u, b=k, c=real(v)) : f32[zz]"});
  CHECK(found.back().where.line == 8);
  CHECK_THROWS_AS(verify(graph), ExportError);
}

TEST_CASE("values that do not exist or come too late are found, and do not crash the printer") {
  Graph graph;
  const ValueId x = graph.add_input("x", TensorType{});
  graph.add_node("aten.a", {{"x", {ValueId{2}}}, {"y", {ArgList{{ValueId{}}}}}}, {TensorType{}});
  graph.add_node("", {{"", {x}}}, {TensorType{}}, PlaceId{9});
  graph.outputs.push_back({"y", {ValueId{77}}});
  graph.assumptions.push_back({ValueId{78}, true, {}});
  graph.mutations.push_back({x, ValueId{79}});
  graph.inputs.push_back({80});
  CHECK(problems(graph) == Lines{"input %? does not exist", "aten.a uses %2 before it is defined",
                                 "aten.a uses a value that does not exist",
                                 "a node has no operator", "a node has a place that does not exist",
                                 "a node has an argument without a name",
                                 "output y uses a value that does not exist",
                                 "the new value of %x uses a value that does not exist",
                                 "the assumption on %? uses a value that does not exist"});
  CHECK(print(graph).find("aten.a(x=%2, y=[%?])") != std::string::npos);
}

TEST_CASE("results belong to one node, inputs and weights to their lists") {
  Graph graph;
  const ValueId x = graph.add_input("x", TensorType{});
  graph.add_input("x", TensorType{});
  const ValueId w = graph.add_weight("w", TensorType{}, WeightKind::parameter);
  const NodeId a = graph.add_node("aten.a", {{"w", {w}}}, {TensorType{}});
  const NodeId b = graph.add_node("aten.b", {}, {TensorType{}});
  graph.node(b).results = {graph.node(a).results[0], x, ValueId{50}};
  graph.weights = {x};
  CHECK(problems(graph) ==
        Lines{"two inputs are called %x", "weight %x is not of that kind",
              "aten.a uses @w, which is not listed",
              "aten.b lists the result %2, which says that it comes from elsewhere",
              "aten.b defines %2 again",
              "aten.b lists the result %x, which says that it comes from elsewhere",
              "aten.b defines %x again", "aten.b has a result that does not exist"});
}

TEST_CASE("names of dims that expressions cannot write are refused") {
  Graph graph;
  graph.dims.push_back({"", {}, {}, 0, false});
  graph.dims.push_back({"a`b", {}, {}, 0, false});
  graph.dims.push_back({"a b", {}, {}, 0, false});
  CHECK(problems(graph).size() == 2);
}

}  // namespace modelport::ir
