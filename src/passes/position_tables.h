// What a model computes from each token's position, for every position there can be: tensors of the
// file. Computed by a runtime when it loads the file, they would be in its heap.
#pragma once

#include <map>
#include <string>

#include "ops/fusions/rotary.h"
#include "passes/rebuild.h"

namespace modelport::passes {

class PositionTables {
 public:
  PositionTables(const ir::Graph& source, Rebuild& rebuild, std::int64_t positions);

  /// Whether cos and sin of the rotation can be made so.
  static bool can_make(const ir::Graph& graph, const ops::fusions::Rotary& rotary);
  /// A weight [positions, pairs], of the values [batch or 1, tokens, columns] that the rotation
  /// takes.
  ir::ValueId cos(const ops::fusions::Rotary& rotary) { return table(rotary, rotary.cos, "cos"); }
  ir::ValueId sin(const ops::fusions::Rotary& rotary) { return table(rotary, rotary.sin, "sin"); }
  /// What computes the weights from every position, its one input. Outputs have their names.
  ir::Graph program() &&;

 private:
  ir::ValueId table(const ops::fusions::Rotary& rotary, ir::ValueId of, std::string_view what);
  std::string free_name(ir::ValueId of, std::string_view what) const;
  void copy(const ir::Node& node, const shape::Substitution& sizes);
  ir::Arg translated(const ir::Arg& arg, const shape::Substitution& sizes);
  ir::ValueId in_program(ir::ValueId of);

  const ir::Graph& source_;
  Rebuild& rebuild_;
  std::int64_t count_;
  ir::Graph program_;
  std::map<ir::ValueId, ir::ValueId> made_;  // what values of the source are in the program
  std::map<ir::ValueId, ir::ValueId> tables_;
};

}  // namespace modelport::passes
