// Rotary embedding, read off its elements: pairs of channels that are turned by an angle which the
// token's position decides. However a model writes it (halves or neighbours, part of the channels,
// scaled), it is the same expression.
#pragma once

#include <optional>

#include "ops/fusions/elements.h"

namespace modelport::ops::fusions {

struct Rotary {
  ir::ValueId x = {};              // before it was turned
  ir::ValueId cos = {}, sin = {};  // [batch or 1, tokens, columns]
  std::int64_t step = 1;           // column `step * k` of these is for pair k
  std::int64_t pairs = 0;
  bool interleaved = false;    // pairs are neighbours, not k and k + pairs
  ir::ValueId positions = {};  // [batch, tokens], an input: what cos and sin are functions of
};

/// `turned` is [batch, heads, tokens, channels].
std::optional<Rotary> read_rotary(const ir::Graph& graph, const KnownNumbers& known,
                                  ir::ValueId turned);

/// The nodes that a value is computed by from `positions` and weights alone, in order; nothing
/// where something else has a part in it.
std::optional<std::vector<ir::NodeId>> chain_from(const ir::Graph& graph, ir::ValueId positions,
                                                  ir::ValueId value);

/// [tokens, pairs], the columns for pairs, of `table` [1, tokens, columns].
ir::ValueId add_columns(ir::Graph& graph, ir::ValueId table, const Rotary& rotary);

}  // namespace modelport::ops::fusions
