// How large each axis can become. The runtime sets aside the memory of a tensor before it knows its
// sizes, so every axis needs a bound.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

namespace modelport::executorch {

using GivenBounds = std::map<std::string, std::int64_t>;

class Bounds {
 public:
  /// Bounds that are given by name count where they are lower than the range in the graph.
  Bounds(const ir::Graph& graph, const GivenBounds& given);

  /// The largest sizes of the shape. An axis of an input without a bound is remembered, and counts
  /// as 1; one that data decides gets some times what the example had, and a run that needs more
  /// fails.
  std::vector<std::int64_t> sizes(const std::vector<shape::Int>& shape, ir::PlaceId place);
  /// A size that the data decides is at most this.
  void learn(const shape::Int& size, std::int64_t most);
  const shape::Ranges& ranges() const { return ranges_; }
  /// Bounds that nothing says, of axes that data decides.
  const GivenBounds& assumed() const { return assumed_; }
  /// One ExportError for all axes without a bound.
  void throw_if_unbounded() { missing_.throw_if_any(); }

 private:
  std::int64_t largest(const shape::Int& size, ir::PlaceId place);
  bool assume_a_bound(const std::string& symbol);
  std::int64_t assumed_for(const shape::Int& size);

  const ir::Graph& graph_;
  shape::Ranges ranges_;
  GivenBounds assumed_;
  std::map<std::string, bool> reported_;
  Diagnostics missing_;
};

}  // namespace modelport::executorch
