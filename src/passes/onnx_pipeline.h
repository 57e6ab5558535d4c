// From a captured graph to the ONNX graph that is written: the passes and why they run.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"
#include "passes/contract.h"

namespace modelport::passes {

struct Pass {
  std::string_view name;
  std::string_view why;
  void (*run)(ir::Graph& graph);
  int since_opset = 0;  // what it emits came with this opset
};

struct Pipeline {
  std::span<const Pass> before;  // on the captured graph, before its operators are lowered
  std::span<const Pass> after;   // on the graph of ONNX operators
  const Contract& contract;      // what a graph is after each of these, and at the end
};
const Pipeline& onnx_pipeline();

struct OnnxSettings {
  int opset = 23;
  bool optimize = true;          // false: the plain lowering
  bool keep_weights = false;     // as they are stored: no weight is wanted transposed
  bool limits_in_graph = false;  // the program tests its inputs itself
};
ir::Graph to_onnx(const ir::Graph& graph, const OnnxSettings& settings);

}  // namespace modelport::passes
