// Patterns in graphs in text form.
#include "ops/fusions/pattern.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ops/fusions/fusion.h"
#include "ops/table/schema.h"

namespace modelport::ops::fusions {
namespace {

std::optional<Found> last_node(std::string_view pattern, const ir::Graph& graph) {
  static const std::vector<int> uses(16, 1);
  return find(parse_pattern(pattern), graph, graph.nodes().back(), uses);
}

const ir::Graph& products() {
  static const ir::Graph graph = ir::parse_graph(
      "graph g(%x: f32[a], %y: f32[a])\n  where a in 1.. = 2\n{\n"
      "  %1 = aten.sin(self=%x) : f32[a]\n  %2 = aten.mul.Tensor(self=%1, other=%x) : f32[a]\n"
      "  %3 = aten.add.Tensor(self=%2, other=%y, alpha=2) : f32[a]\n  return y = %3\n}\n");
  return graph;
}

void check_rows(const Pattern& pattern) {
  if (pattern.kind == Pattern::Kind::call) {
    CAPTURE(pattern.op);
    const OpDef* row = find_op(pattern.op);
    REQUIRE(row != nullptr);
    for (const std::string& name : pattern.argument_names)
      CHECK_MESSAGE(schema_of(*row).find(name) != nullptr, name);
  }
  for (const Pattern& part : pattern.parts) check_rows(part);
}

}  // namespace

TEST_CASE("an argument that a pattern does not mention has its default") {
  CHECK_FALSE(last_node("aten.add.Tensor(self=a, other=b)", products()));
  CHECK(last_node("aten.add.Tensor(self=a, other=b, ...)", products()));
  CHECK(last_node("aten.add.Tensor(self=a, other=b, alpha=2)", products()));
  CHECK(last_node("aten.add.Tensor(self=a, other=b, alpha=_)", products()));
}

TEST_CASE("a name is the same argument wherever it occurs") {
  CHECK(last_node("aten.add.Tensor(self=aten.mul.Tensor(self=aten.sin(self=x), other=x), ...)",
                  products()));
  CHECK_FALSE(last_node(
      "aten.add.Tensor(self=aten.mul.Tensor(self=aten.sin(self=x), other=x), other=x, ...)",
      products()));
}

TEST_CASE("operands of an operator that commutes may have changed places") {
  const auto found = last_node(
      "aten.add.Tensor(self=p@aten.mul.Tensor(self=x, other=aten.sin(self=x)), ...)", products());
  REQUIRE(found);
  CHECK(found->value("x") == products().inputs[0]);
  CHECK(found->type("p").dtype == Dtype::f32);
  CHECK_FALSE(last_node("aten.add.Tensor(self=y, other=aten.mul.Tensor(self=_, other=_), ...)",
                        products()));
}

TEST_CASE("one choice of several is enough") {
  CHECK(
      last_node("aten.add.Tensor(self={aten.sin(self=_) | aten.mul.Tensor(self=_, other=_)}, ...)",
                products()));
  CHECK_FALSE(
      last_node("aten.add.Tensor(self={aten.sin(self=_) | aten.cos(self=_)}, ...)", products()));
}

TEST_CASE("a pattern that does not parse is our own error") {
  CHECK_THROWS_AS(parse_pattern("aten.sin(self=x"), InternalError);
  CHECK_THROWS_AS(parse_pattern("x"), InternalError);
  CHECK_THROWS_AS(parse_pattern("aten.sin(x)"), InternalError);
  CHECK_THROWS_AS(parse_pattern("aten.sin(self={x | y)"), InternalError);
}

TEST_CASE("every fusion speaks of rows and of arguments that they have") {
  for (const std::span<const Fusion> rows : {norms(), grouped_attention()}) {
    for (const Fusion& row : rows) {
      CAPTURE(row.name);
      check_rows(parse_pattern(row.pattern));
      CHECK(find_op(row.op) != nullptr);
    }
  }
}

}  // namespace modelport::ops::fusions
