// Passes on captured graphs: what models write with many operators and ATen has one for.
#pragma once

#include "ir/graph.h"

namespace modelport::passes {

/// x * rsqrt(mean(x^2) + eps) * weight -> rms_norm
void fuse_rms_norm(ir::Graph& graph);
/// Keys and values repeated for each group of query heads -> attention that repeats them itself
void fuse_grouped_attention(ir::Graph& graph);

}  // namespace modelport::passes
