// The small constants of an ONNX graph as numbers.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace modelport::passes {

struct Constant {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> integers;  // one of the two lists, by the type
  std::vector<double> reals;

  std::size_t size() const { return integers.size() + reals.size(); }
  double at(std::size_t index) const {
    return reals.empty() ? static_cast<double>(integers[index]) : reals[index];
  }
  bool all(double number) const;
};

/// What a Constant node holds; nothing for any other value.
std::optional<Constant> constant_of(const ir::Graph& graph, ir::ValueId id);
/// Turns the node into a Constant with these numbers.
void make_constant(ir::Node& node, const Constant& constant);

std::vector<std::int64_t> int_list_of(const ir::Arg& arg);

}  // namespace modelport::passes
