// What the scores of an attention go through between the product of queries and keys and their
// softmax: distances that are added, masks that are added or fill in, in whatever order and with
// rows and heads in one axis or in two.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/fusions/elements.h"
#include "ops/fusions/pattern.h"

namespace modelport::ops::fusions {

/// One operator on the scores.
struct ScoreStep {
  ir::NodeId node;
  std::string_view scores;   // the argument that they come in by; empty where it makes them
  std::string_view operand;  // what is added, or says where they are filled; empty: neither
  bool adds;
  /// Sizes of the operand, and of what all steps up to this one make of zeros: [batch or 1, heads
  /// or 1, queries or 1, keys].
  std::vector<shape::Int> operand_sizes = {}, sizes = {};
};

/// What a mask is made with beside the steps: zeros to begin with, their type, their sizes.
inline constexpr std::string_view kFill = "aten.full", kConvert = "aten.to.dtype",
                                  kReshape = "aten.reshape";

/// Scores are scale * (queries times keys) + what the steps make of zeros, wherever a key can be
/// seen: one that cannot has so low a score that nothing of it is left.
struct ScorePath {
  Found product;  // `query` and `keys`, which may be repeated: [batch, heads, tokens, width]
  double scale = 1;
  std::vector<ScoreStep> steps;  // those that change zeros, the innermost first
};

/// The pattern of `what`, [batch, heads, ...], with rows and heads in one axis.
std::string flattened(std::string_view what);

/// The pattern of keys that are transposed: [batch, heads, width, tokens].
std::string transposed_keys(std::string_view keys);

/// The path to `weights`, a softmax of scores or a view of one. Nothing where it is another one.
std::optional<ScorePath> find_score_path(const ir::Graph& graph, const KnownNumbers& known,
                                         ir::ValueId weights);

}  // namespace modelport::ops::fusions
