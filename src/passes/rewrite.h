// What passes over ONNX graphs share: values that others take the place of, and nodes that nobody
// needs any more.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace modelport::passes {

/// Which value stands in for which; a value that nothing replaces stands for itself.
class Replacements {
 public:
  explicit Replacements(const ir::Graph& graph) : by_(graph.values().size()) {}

  void replace(ir::ValueId old, ir::ValueId by) { by_[old.index] = operator()(by); }
  ir::ValueId operator()(ir::ValueId id) const {
    return id.index < by_.size() && by_[id.index] != ir::ValueId{} ? by_[id.index] : id;
  }
  void apply(ir::Arg& arg) const;
  void apply(ir::Node& node) const;
  /// Outputs, state and checks; nodes are expected to be up to date, as a pass rewrites them on its
  /// way.
  void apply_to_outputs(ir::Graph& graph) const;

 private:
  std::vector<ir::ValueId> by_;
};

/// Drops nodes whose results nobody uses, and weights that no node and no output mentions.
void drop_unused(ir::Graph& graph);

/// The i-th input of an ONNX node; ValueId{} where it is left out.
ir::ValueId input_of(const ir::Node& node, std::size_t index);
std::size_t input_count(const ir::Node& node);

}  // namespace modelport::passes
