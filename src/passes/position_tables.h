// What a model computes from each token's position, computed once for every position there can be.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ops/fusions/rotary.h"
#include "passes/rebuild.h"

namespace modelport::passes {

class PositionTables {
 public:
  PositionTables(const ir::Graph& source, Rebuild& rebuild, std::int64_t positions)
      : source_(source), rebuild_(rebuild), count_(positions) {}

  /// Whether cos and sin of the rotation can be made so.
  static bool can_make(const ir::Graph& graph, const ops::fusions::Rotary& rotary);
  /// [positions, pairs] of the values [batch or 1, tokens, columns] that the rotation takes.
  ir::ValueId cos(const ops::fusions::Rotary& rotary) { return table(rotary, rotary.cos); }
  ir::ValueId sin(const ops::fusions::Rotary& rotary) { return table(rotary, rotary.sin); }

 private:
  ir::ValueId table(const ops::fusions::Rotary& rotary, ir::ValueId of);
  void copy(const ir::Node& node, const shape::Substitution& sizes);
  ir::Arg translated(const ir::Arg& arg, const shape::Substitution& sizes) const;

  const ir::Graph& source_;
  Rebuild& rebuild_;
  std::int64_t count_;
  std::map<ir::ValueId, ir::ValueId> made_;  // what values of the source are for all positions
  std::map<ir::ValueId, ir::ValueId> tables_;
};

}  // namespace modelport::passes
