// Runs a graph through libtorch, operator by operator, at any admissible size: the proof of a
// capture, and the referee when a backend's values differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace modelport::capture {

using WeightTensors = std::unordered_map<std::string, at::Tensor>;
using OutputValue = std::variant<at::Tensor, bool, std::int64_t, double>;

struct RunResult {
  std::vector<OutputValue> outputs;
  std::vector<std::pair<std::string, at::Tensor>> mutated_buffers;
};

struct RunRequest {
  const ir::Graph& graph;
  const WeightTensors& weights;
  const std::vector<at::Tensor>& inputs;  // in the order of graph.inputs
  /// Buffers as an earlier run left them, in place of their values in `weights`.
  WeightTensors state = {};
  /// Sees each node's results as they are made; for finding the first difference.
  std::function<void(ir::NodeId, const std::vector<at::Tensor>&)> watch;
};

/// Throws ExportError: bad_input for inputs of another rank or dtype, guard_failed where sizes or
/// data are outside what the graph was captured for, missing_weight.
RunResult run_graph(const RunRequest& request);

/// One call outside a graph's nodes: arguments name inputs of the graph, sizes are those of the
/// inputs.
void run_operator(std::string_view op, const ir::Graph& graph,
                  const std::vector<ir::NamedArg>& args, const std::vector<at::Tensor>& inputs,
                  std::vector<at::Tensor>& results);

}  // namespace modelport::capture
