// The sizes of actual inputs as values of a graph's symbols.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ir/graph.h"

namespace modelport::capture {

/// Checks rank, dtype and sizes of all inputs, ranges and guards; throws ExportError with everything that does not fit.
shape::Values bind_sizes(const ir::Graph& graph, const std::vector<at::Tensor>& inputs);

/// Whether every symbol of the condition has a value: data gets one only while the graph runs.
bool all_known(const shape::Bool& condition, const shape::Values& values);
/// What to say about a guard that does not hold.
Diagnostic broken(const shape::Guard& guard);

}  // namespace modelport::capture
