// Where the tensors of a method lie: which of them share memory, from when to when each is needed,
// and its place in the arena.
#pragma once

#include "backends/executorch/method.h"

namespace modelport::executorch {

/// Lets state be written in place or at the end, results take the place of operands where the
/// kernel allows it, and gives every activation an offset. Sets `arena_bytes`.
void plan(Method& method);

/// Bytes that are needed at once at the worst instruction: no plan takes less.
std::uint64_t least_arena_bytes(const Method& method);

}  // namespace modelport::executorch
