// Capture for C++ callers: a function on tensors is called once with traced tensors and becomes a
// graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/interpreter.h"
#include "ir/graph.h"

namespace modelport::capture {

/// `x.sym_size(d)` keeps a named axis dynamic; `x.size(d)` asks for a number and thereby pins it.
using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

struct NamedInput {
  std::string name;
  at::Tensor tensor;  // the example
  /// One entry for each axis, or none at all. A name makes the axis dynamic, and equal names mean
  /// equal sizes; an axis without a name keeps the size of the example.
  std::vector<std::optional<std::string>> axes = {};
};

/// A tensor that the function closes over. Those without a name become constants of the graph.
struct NamedWeight {
  std::string name;
  at::Tensor tensor;
  ir::WeightKind kind = ir::WeightKind::parameter;
};

struct FunctionOptions {
  std::string name = "function";  // of the graph
  std::vector<NamedWeight> weights = {};
};

struct CapturedFunction {
  ir::Graph graph;
  WeightTensors weights;  // constants too

  /// The function's results at any size that the graph admits; throws as run_graph does. What the
  /// function writes to weights is in graph.mutations, and the tensors here stay as they are.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;
};

/// Throws ExportError for inputs that make no sense, operators that cannot be recorded and named
/// axes that the function pins; exceptions of the function itself pass through. Either way the
/// thread, the inputs and the weights are as they were. Random numbers are drawn as by any call.
CapturedFunction capture_function(const TensorFunction& function,
                                  const std::vector<NamedInput>& inputs,
                                  const FunctionOptions& options = {});

}  // namespace modelport::capture
