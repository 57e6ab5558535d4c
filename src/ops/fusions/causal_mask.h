// What a mask lets a query see, read off its elements.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "ops/fusions/elements.h"

namespace modelport::ops::fusions {

/// Added to a score or put in its place, it leaves nothing in the softmax, in any floating type.
inline constexpr double kHiddenScore = -6e4;

/// Keys up to the query's own place, without those that `padding` has a zero for; with a window,
/// the query's own place and the `window - 1` before it.
struct CausalMask {
  ir::ValueId padding;  // [batch, keys]
  std::optional<std::int64_t> window;
};

/// A mask [batch or 1, heads or 1, queries, keys] of truths, or of numbers to add; the queries are
/// at the end of the keys. Text: why it is no such mask.
std::variant<CausalMask, std::string> read_causal_mask(const ir::Graph& graph,
                                                       const KnownNumbers& known, ir::ValueId mask);

}  // namespace modelport::ops::fusions
