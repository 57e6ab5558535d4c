#include "passes/fuse.h"

#include <algorithm>

namespace modelport::passes {

std::vector<FusionTrace> fuse(ir::Graph& graph, std::span<const ops::fusions::Fusion> rows,
                              const Wanted& wanted) {
  std::vector<ops::fusions::Pattern> patterns;
  for (const auto& row : rows) patterns.push_back(ops::fusions::parse_pattern(row.pattern));
  std::vector<int> uses(graph.values().size(), 0);
  const auto count = [&](ir::ValueId id) { ++uses[id.index]; };
  for (const ir::Node& node : graph.nodes()) ir::for_each_operand(node, count);
  ir::for_each_end(graph, count);
  std::vector<bool> needed(graph.values().size(), false);
  const auto need = [&](ir::ValueId id) { needed[id.index] = true; };
  ir::for_each_end(graph, need);
  std::vector<FusionTrace> fired;
  // From the end, so that a pattern still finds the nodes that a smaller one would replace.
  for (std::uint32_t i = static_cast<std::uint32_t>(graph.nodes().size()); i-- > 0;) {
    ir::Node& node = graph.node({i});
    // Its uses went with what was fused; a node that had none is there for another reason.
    const bool dead = !node.results.empty() && std::ranges::all_of(node.results, [&](auto id) {
      return uses[id.index] > 0 && !needed[id.index];
    });
    for (std::size_t k = 0; !dead && k < rows.size(); ++k) {
      const auto found = ops::fusions::find(patterns[k], graph, node, uses);
      if (!found || !rows[k].guard(*found)) continue;
      std::vector<ir::NamedArg> args = rows[k].args(*found, node);
      if (wanted && !wanted(args)) continue;
      node.args = std::move(args);
      node.op = rows[k].op;
      fired.push_back({rows[k].name, graph.place(node.place)});
      break;
    }
    if (!dead) ir::for_each_operand(node, need);
  }
  ir::drop_dead_nodes(graph);
  return fired;
}

void fuse_norms(ir::Graph& graph) { fuse(graph, ops::fusions::norms()); }
void fuse_experts(ir::Graph& graph, const Wanted& wanted) {
  fuse(graph, ops::fusions::experts(), wanted);
}
void fuse_grouped_attention(ir::Graph& graph) { fuse(graph, ops::fusions::grouped_attention()); }

}  // namespace modelport::passes
