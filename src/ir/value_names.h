// How values are called in text: inputs %name, weights @name, results of nodes %1, %2, ... in order
// of execution.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace modelport::ir {

class ValueNames {
 public:
  explicit ValueNames(const Graph& graph);
  /// Takes any id; one that no node produces and nobody gives prints as %?.
  void append(std::string& out, ValueId id) const;
  std::string operator()(ValueId id) const;

 private:
  const Graph& graph_;
  std::vector<std::uint32_t> numbers_;  // by value; 0 for those that no node produces
};

}  // namespace modelport::ir
