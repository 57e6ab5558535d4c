// A captured graph in the operators of ONNX: every node is replaced by what its row's cell emits.
#pragma once

#include "ir/graph.h"
#include "ops/onnx/lower.h"

namespace modelport::passes {

/// Inputs, weights and outputs keep their names and types; numbers among the outputs go. Conditions
/// on data and assumptions become assumptions that a value is true; a buffer that is written to
/// gets an output more. Complex inputs and outputs are pairs of reals. Throws ExportError with
/// every operator that has no rule.
ir::Graph lower_to_onnx(const ir::Graph& graph, const ops::Lower::Settings& settings);

}  // namespace modelport::passes
