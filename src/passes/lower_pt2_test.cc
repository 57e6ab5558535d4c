// Captured graphs in torch's own operators.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/lower.h"

namespace modelport::passes {
namespace {

ir::Graph lowered(const std::string& text) {
  ir::Graph graph = lower_to(Pt2Target{}, ir::parse_graph(text));
  ir::verify(graph);
  return graph;
}

std::size_t count(const ir::Graph& graph, std::string_view op) {
  std::size_t found = 0;
  for (const ir::Node& node : graph.nodes()) found += node.op == op ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("torch's operators stay as they are") {
  const std::string text =
      "graph same(%x: f32[batch, 4])\n"
      "  where batch in 1.. = 3\n"
      "{\n"
      "  %1 = aten.relu(self=%x) : f32[batch, 4]\n"
      "  return y = %1\n"
      "}\n";
  CHECK(ir::print(lowered(text)) == ir::print(ir::parse_graph(text)));
}

TEST_CASE("a recurrence has as many doubling steps as its length may need") {
  const auto program = [](const char* range) {
    return std::string("graph steps(%decay: f32[n, 4], %x: f32[n, 4])\n  where n in ") + range +
           " = 5\n"
           "{\n"
           "  %1 = modelport.linear_recurrence(decay=%decay, input=%x, dim=0) : f32[n, 4]\n"
           "  return y = %1\n"
           "}\n";
  };
  CHECK(count(lowered(program("1..8")), "aten.add.Tensor") == 3);
  CHECK(count(lowered(program("1..9")), "aten.add.Tensor") == 4);
  CHECK(count(lowered(program("1..65536")), "aten.add.Tensor") == 16);
  CHECK(count(lowered(program("1..9")), "modelport.linear_recurrence") == 0);
}

TEST_CASE("a recurrence of one place is a step from its state") {
  const ir::Graph graph = lowered(
      "graph step(%decay: f32[1, 4], %x: f32[1, 4], %state: f32[4])\n"
      "{\n"
      "  %1 = modelport.linear_recurrence(decay=%decay, input=%x, state=%state, dim=0) : f32[1, "
      "4]\n"
      "  return y = %1\n"
      "}\n");
  CHECK(count(graph, "aten.mul.Tensor") == 1);
  CHECK(count(graph, "aten.cat") == 0);
}

}  // namespace modelport::passes
