// Which nodes of XNNPACK run together. A delegate is a run of `xnn.*` nodes without others between,
// so the order of the nodes says it.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace modelport::passes {

struct Partition {
  std::vector<std::size_t> delegate_of;  // by node, from 1 on; 0: the runtime's kernels
  std::vector<std::size_t> step_of;      // by node: kernels of step k run behind delegate k
  std::vector<bool> is_live;             // by node; nobody needs what the others give
  std::size_t count = 0;
};

/// The fewest delegates that there can be: a new one begins only where a kernel stands on the way
/// from one node to another. So none waits for a kernel that waits for it.
Partition partition(const ir::Graph& graph);

/// The same program in the order of the partition, without what nobody needs.
ir::Graph in_order_of(const Partition& partition, const ir::Graph& graph);

}  // namespace modelport::passes
