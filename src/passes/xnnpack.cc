#include "passes/xnnpack.h"

#include <algorithm>
#include <array>

#include "passes/executorch_lowering.h"
#include "passes/fuse.h"
#include "passes/partition.h"

namespace modelport::passes {
namespace {

class ToXnnpack : public ExecutorchLowering {
 public:
  /// Nodes of the source that are marked go to kernels.
  ToXnnpack(const ir::Graph& source, const XnnpackOptions& options,
            const std::vector<bool>& to_kernels)
      : ExecutorchLowering(source),
        lower_(target(), dims(), options.storing),
        to_kernels_(to_kernels) {}

  const std::map<ops::xnnpack::Left, std::size_t>& left() const { return lower_.left(); }
  /// The node of the source that a node came from.
  std::size_t source_of(std::size_t node) const {
    const auto after = std::ranges::upper_bound(first_node_, node);
    return static_cast<std::size_t>(after - first_node_.begin()) - 1;
  }

 private:
  ops::xnnpack::Lower& emitter() override { return lower_; }
  void begin(std::size_t node) override {
    first_node_.push_back(target().nodes().size());
    lower_.allow(!to_kernels_[node]);
  }
  void nodes_kept(const std::vector<bool>& kept) override {
    for (std::size_t& first : first_node_)
      first = static_cast<std::size_t>(
          std::count(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(first), true));
  }

  ops::xnnpack::Lower lower_;
  const std::vector<bool>& to_kernels_;
  std::vector<std::size_t> first_node_;  // by node of the source
};

bool is_heavy(const ir::Node& node) {
  constexpr std::array<std::string_view, 4> kHeavy{"xnn.BatchMatrixMultiply", "xnn.Conv2d",
                                                   "xnn.DepthwiseConv2d", "xnn.FullyConnected"};
  return std::ranges::find(kHeavy, node.op) != kHeavy.end();
}

/// By delegate, counted from 1.
std::vector<bool> worth_calling(const ir::Graph& graph, const Partition& found,
                                std::size_t least_nodes) {
  std::vector<std::size_t> nodes(found.count + 1, 0);
  std::vector<bool> worth(found.count + 1, false);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::size_t delegate = found.delegate_of[i];
    if (delegate == 0) continue;
    if (++nodes[delegate] >= least_nodes || is_heavy(graph.nodes()[i])) worth[delegate] = true;
  }
  return worth;
}

}  // namespace

XnnpackLowered lower_to_xnnpack(const ir::Graph& graph, const XnnpackOptions& options) {
  ir::Graph source = graph;
  fuse_grouped_attention(source);
  std::vector<bool> to_kernels(source.nodes().size(), false);
  // What goes to kernels may bring others together, so it is tried until nothing changes; every
  // round sends at least one node there.
  while (true) {
    ToXnnpack lowering(source, options, to_kernels);
    const ir::Graph lowered = lowering.run();
    const Partition found = partition(lowered);
    const std::vector<bool> worth = worth_calling(lowered, found, options.least_nodes);
    bool again = false;
    for (std::size_t i = 0; i < lowered.nodes().size(); ++i) {
      const std::size_t delegate = found.delegate_of[i];
      if (delegate == 0 || worth[delegate]) continue;
      to_kernels[lowering.source_of(i)] = true;
      again = true;
    }
    if (!again)
      return {
          .graph = in_order_of(found, lowered), .delegates = found.count, .left = lowering.left()};
  }
}

}  // namespace modelport::passes
