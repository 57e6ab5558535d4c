// The name of every value in the file: inputs, outputs and weights keep theirs, the rest are
// numbered.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace modelport::onnx {

class ValueNames {
 public:
  explicit ValueNames(const ir::Graph& graph);
  const std::string& of(ir::ValueId id) const { return names_[id.index]; }
  /// A name that no value has yet: `wanted`, or `wanted` and a number.
  void rename(ir::ValueId id, const std::string& wanted);
  /// Two values that are one tensor in the file.
  void unite(ir::ValueId id, ir::ValueId with) { names_[id.index] = names_[with.index]; }

 private:
  std::vector<std::string> names_;
  std::unordered_set<std::string> taken_;
};

}  // namespace modelport::onnx
