#include "ir/graph.h"

#include <doctest/doctest.h>

#include <limits>

#include "ir/text.h"
#include "ir/verify.h"

namespace modelport::ir {

namespace {

using shape::Int;

Graph parse_sound(std::string_view text) {
  Graph graph = parse_graph(text);
  verify(graph);
  return graph;
}

}  // namespace

TEST_CASE("a place is stored once and unknown places are number zero") {
  Graph graph;
  const SourceLine line{"a.py", 3, "f"};
  const PlaceId first = graph.add_place(line, "m");
  CHECK(first != PlaceId{});
  CHECK(graph.add_place(line, "m") == first);
  CHECK(graph.add_place(line, "n") != first);
  CHECK(graph.add_place({"a.py", 4, "f"}, "m") != first);
  CHECK(graph.add_place({}, "") == PlaceId{});
  CHECK(graph.place_count() == 4);
  CHECK(graph.place(first).where == line);
}

TEST_CASE("inputs and weights are found by name, each among their own") {
  Graph graph;
  const ValueId input = graph.add_input("x", TensorType{});
  const ValueId weight = graph.add_weight("x", TensorType{}, WeightKind::buffer);
  REQUIRE(graph.find_input("x") != nullptr);
  REQUIRE(graph.find_weight("x") != nullptr);
  CHECK(*graph.find_input("x") == input);
  CHECK(*graph.find_weight("x") == weight);
  CHECK(graph.find_input("y") == nullptr);
}

TEST_CASE("arguments are found by name") {
  const Graph graph = parse_graph("graph g()\n{\n  aten.f(a=1, b=None)\n}");
  const Node& node = graph.nodes()[0];
  REQUIRE(node.find("a") != nullptr);
  CHECK(*node.find("a") == Arg{Int(1)});
  CHECK(node.find("b")->is_none());
  CHECK(node.find("c") == nullptr);
}

TEST_CASE("numbers are equal when they are the same bits, and NaN equals itself") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Arg{nan} == Arg{nan});
  CHECK(Arg{0.0} != Arg{-0.0});
  CHECK(Arg{1.0} != Arg{Int(1)});
  CHECK(Arg{true} != Arg{Int(1)});
  CHECK(Arg{ArgList{{nan}}} == Arg{ArgList{{nan}}});
}

TEST_CASE("keep_nodes renumbers what stays") {
  Graph graph = parse_sound(
      "graph g(%x: f32[2])\n  weights @w: f32[2] buffer, @v: f32[2]\n{\n"
      "  %1 = aten.a(x=%x) : f32[2]\n  %2, %3 = aten.b(x=%x) : f32[2], f32[]\n"
      "  %4 = aten.c(x=[%3, None, @w]) : f32[2]\n  assume %3 == true\n  return y = %4\n"
      "  mutate @w = %4\n}");
  std::erase_if(graph.weights, [&](ValueId id) { return graph.value(id).name == "v"; });
  graph.keep_nodes({false, true, true});
  verify(graph);
  CHECK(print(graph) ==
        "graph g(%x: f32[2])\n  weights @w: f32[2] buffer\n{\n"
        "  %1, %2 = aten.b(x=%x) : f32[2], f32[]\n  %3 = aten.c(x=[%2, None, @w]) : f32[2]\n"
        "  assume %2 == true\n  return y = %3\n  mutate @w = %3\n}\n");
  CHECK(graph.find_weight("v") == nullptr);
  REQUIRE(graph.find_weight("w") != nullptr);
  CHECK(graph.value(*graph.find_weight("w")).name == "w");
  CHECK(graph.values().size() == 5);
}

TEST_CASE("keep_nodes refuses to drop what is used, and changes nothing then") {
  const std::string text =
      "graph g(%x: f32[2])\n{\n  %1 = aten.a(x=%x) : f32[2]\n  %2 = aten.b(x=%1) : f32[2]\n"
      "  return y = %2\n}\n";
  Graph graph = parse_sound(text);
  CHECK_THROWS_AS(graph.keep_nodes({false, true}), InternalError);
  CHECK_THROWS_AS(graph.keep_nodes({true, false}), InternalError);
  CHECK_THROWS_AS(graph.keep_nodes({true}), InternalError);
  CHECK(print(graph) == text);
}

TEST_CASE("dead nodes go, random ones too; what outputs, mutations and assumptions use stays") {
  Graph graph = parse_sound(
      "graph g(%x: f32[2])\n  weights @w: f32[2] buffer\n{\n"
      "  %1 = aten.rand(size=[2]) : f32[2]\n  %2 = aten.dead(x=%1) : f32[2]\n"
      "  %3 = aten.a(x=%x) : f32[2]\n  %4 = aten.b(x=%x) : f32[2]\n  %5 = aten.c(x=%x) : f32[]\n"
      "  aten._assert(x=%x)\n  assume %5 == true\n  return y = [None, %3]\n  mutate @w = %4\n}");
  drop_dead_nodes(graph);
  verify(graph);
  CHECK(
      print(graph) ==
      "graph g(%x: f32[2])\n  weights @w: f32[2] buffer\n{\n"
      "  %1 = aten.a(x=%x) : f32[2]\n  %2 = aten.b(x=%x) : f32[2]\n  %3 = aten.c(x=%x) : f32[]\n"
      "  aten._assert(x=%x)\n  assume %3 == true\n  return y = [None, %1]\n  mutate @w = %2\n}\n");
}

TEST_CASE("a node that gives a symbol its value lives as long as the symbol is mentioned") {
  const auto nodes_left = [](std::string_view use) {
    Graph graph = parse_sound(
        "graph g(%x: f32[n])\n  where n in 1.. = 2, u0 in 0.. = 1 from data, u1 in 0.. = 1 from "
        "data\n"
        "{\n  %1 = aten.item(self=%x) : int u0\n  %2 = aten.nonzero(self=%x) : i64[u1, 1]\n"
        "  %3 = aten.item(self=%x) : float u2\n  %4 = aten.item(self=%x) : bool u3\n"
        "  return y = " +
        std::string(use) + "\n}");
    drop_dead_nodes(graph);
    verify(graph);
    std::string left;
    for (const Node& node : graph.nodes()) left += print(graph.value(node.results[0]).type) + ";";
    return left;
  };
  CHECK(nodes_left("n") == "");
  CHECK(nodes_left("2*u0 + n") == "int u0;");
  CHECK(nodes_left("[n//u1]") == "i64[u1, 1];");
  CHECK(nodes_left("real(real(u2)*2.0)") == "float u2;");
  CHECK(nodes_left("trunc(real(u2)*2.0)") == "float u2;");
  CHECK(nodes_left("select(bool(u3), u0, 1)") == "int u0;bool u3;");
}

TEST_CASE("substitute replaces symbols in types, arguments, outputs, guards and dims") {
  Graph graph = parse_sound(
      "graph g(%x: f32[s0, s1])\n  where s0 in 1.. = 2, s1 in 1.. = 3, s2 in 1.. = 5,\n"
      "    s2 == s0 + s1,  # a.py:1\n    s0 != s1\n"
      "{\n  %1 = aten.view(self=%x, size=[s2, 2*s1], scale=real(s1**-0.5)) : f32[s2, 2*s1]\n"
      "  return y = %1, n = s0*s1\n}");
  graph.substitute({{"s0", Int::symbol("batch")}, {"s1", 4}, {"s2", Int::symbol("batch") + 4}});
  verify(graph);
  CHECK(print(graph) ==
        "graph g(%x: f32[batch, 4])\n  where batch in 1.. = 2,\n    batch != 4\n"
        "{\n  %1 = aten.view(self=%x, size=[batch + 4, 8], scale=real(0.5)) : f32[batch + 4, 8]\n"
        "  return y = %1, n = 4*batch\n}\n");
}

TEST_CASE("substitute can swap two symbols") {
  Graph graph = parse_sound("graph g(%x: f32[a, b])\n  where a in 1.. = 2, b in 1.. = 3\n{\n}");
  graph.substitute({{"a", Int::symbol("b")}, {"b", Int::symbol("a")}});
  CHECK(print(graph) ==
        "graph g(%x: f32[b, a])\n  where b in 1.. = 2, a in 1.. = 3\n{\n  return\n}\n");
}

TEST_CASE("programs are the same whatever their values, places and ranges are") {
  const std::string_view text =
      "graph g(%x: f32[n, 1])\n  where n in 1.. = 2\n  weights @w: f32[2]\n{\n"
      "  %1 = aten.a(x=%x, w=@w, eps=nan) : f32[n, 1]\n  assume %1 == nan\n  return y = %1\n}";
  const Graph graph = parse_sound(text);
  CHECK(same_program(graph, graph));
  CHECK(same_program(
      graph,
      parse_sound("graph other(%x: f32[n, 1])\n  where n in 5..7 = 6, n >= 6\n"
                  "  weights @unused: f32[3], @w: f32[2]\n{\n"
                  "  %5 = aten.a(x=%x, w=@w, eps=nan) : f32[n, 1]  # a.py:7\n  assume %5 == nan\n"
                  "  return y = %5\n}")));
  const auto differs = [&](std::string_view from, std::string_view to) {
    std::string changed(text);
    std::size_t at = 0;
    while ((at = changed.find(from, at)) != std::string::npos) {
      changed.replace(at, from.size(), to);
      at += to.size();
    }
    return !same_program(graph, parse_graph(changed)) && !same_program(parse_graph(changed), graph);
  };
  CHECK(differs("%x", "%z"));
  CHECK(differs("f32[n, 1]", "f16[n, 1]"));
  CHECK(differs("f32[n, 1]", "f32[n, 2]"));
  CHECK(differs("@w", "@v"));
  CHECK(differs("@w: f32[2]", "@w: f32[2] buffer"));
  CHECK(differs("aten.a", "aten.b"));
  CHECK(differs("eps=nan", "eps=0.0"));
  CHECK(differs("x=%x", "x=[%x]"));
  CHECK(differs("x=%x, w=@w", "w=@w, x=%x"));
  CHECK(differs("== nan", "== 1"));
  CHECK(differs("return y = %1", "return y = %x"));
  CHECK(differs("return y = %1", "return z = %1"));
  CHECK(differs("  assume %1 == nan\n", ""));
  CHECK(differs("return y = %1", "%2 = aten.c() : f32[]\n return y = %1"));
}

}  // namespace modelport::ir
