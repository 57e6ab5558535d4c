// Masks of attention that hide nothing: models make them where no input says what to hide.
#pragma once

#include <set>

#include "ir/graph.h"

namespace modelport::ops::fusions {

/// Attention goes without the masks that are true everywhere, at every size. The constants in
/// `true_constants` are known to be. What made the masks stays, without users.
void drop_needless_masks(ir::Graph& graph, const std::set<ir::ValueId>& true_constants);

}  // namespace modelport::ops::fusions
