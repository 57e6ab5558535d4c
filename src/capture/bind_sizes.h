// The sizes of tensors held against what a graph is valid for.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ir/graph.h"

namespace modelport::capture {

/// The value of each symbol. Throws ExportError: bad_input for inputs of another rank or dtype,
/// guard_failed for sizes outside the limits.
shape::Values bind_sizes(const ir::Graph& graph, const std::vector<at::Tensor>& inputs);

/// The condition does not hold; one on a number that is not known yet does not fail.
bool fails(const shape::Guard& guard, const shape::Values& values);

}  // namespace modelport::capture
