#include "ir/users.h"

#include <doctest/doctest.h>

#include "ir/text.h"

namespace modelport::ir {

TEST_CASE("who takes a value: each node as often as it does, and the end of the graph") {
  const Graph graph = parse_graph(R"(graph g(%x: f32[4])
  weights @mean: f32[4] buffer
{
  %0 = aten.relu(self=%x) : f32[4]
  %1 = aten.mul.Tensor(self=%0, other=%0) : f32[4]
  %2 = aten.add.Tensor(self=%1, other=%x, alpha=1) : f32[4]
  %3 = aten.neg(self=%2) : f32[4]
  return y = %3
  mutate @mean = %2
}
)");
  const Users users(graph);
  const ValueId x = graph.inputs[0];
  const auto result = [&](std::uint32_t node) { return graph.node({node}).results[0]; };
  CHECK(users.nodes(x) == std::vector<NodeId>{{0}, {2}});
  CHECK(users.nodes(result(0)) == std::vector<NodeId>{{1}, {1}});
  CHECK(users.nodes(result(3)).empty());
  CHECK_FALSE(users.only(x));
  CHECK_FALSE(users.only(result(0)));
  CHECK(users.only(result(1)) == NodeId{2});
  CHECK_FALSE(users.only(result(2)));  // a buffer keeps it as well
  CHECK(users.is_kept(result(2)));
  CHECK(users.is_kept(result(3)));
  CHECK_FALSE(users.is_kept(result(1)));
}

}  // namespace modelport::ir
