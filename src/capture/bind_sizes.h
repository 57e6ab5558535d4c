// The sizes of actual inputs as values of a graph's symbols.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ir/graph.h"

namespace modelport::capture {

/// Checks rank, dtype and sizes of all inputs, ranges and guards; throws ExportError with
/// everything that does not fit.
shape::Values bind_sizes(const ir::Graph& graph, const std::vector<at::Tensor>& inputs);

/// Whether the guard is known not to hold; data gets its values only while the graph runs.
bool fails(const shape::Guard& guard, const shape::Values& values);
/// What to say about a guard that does not hold.
Diagnostic broken(const shape::Guard& guard);

}  // namespace modelport::capture
