// The mask that a kernel for attention adds to its scores, made of what the model does to its own.
#pragma once

#include <span>

#include "ops/fusions/score_path.h"
#include "passes/rebuild.h"

namespace modelport::passes {

/// What the steps, of the source, make of zeros: [batch or 1, heads or 1, queries, keys].
ir::ValueId own_mask(const ir::Graph& source, std::span<const ops::fusions::ScoreStep> steps,
                     Rebuild& rebuild);

/// The same elements in these sizes.
ir::ValueId viewed(Rebuild& rebuild, ir::ValueId value, const std::vector<shape::Int>& sizes,
                   ir::PlaceId place);

}  // namespace modelport::passes
