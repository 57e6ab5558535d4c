// From a captured graph to the ONNX graph that is written: the passes and why they run.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ops/fusions/elements.h"
#include "passes/contract.h"
#include "passes/quantize_weights.h"
#include "passes/runtime_fusions.h"

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
/// Before these, into operators of onnxruntime's own.
std::span<const RuntimeFusion> runtime_fusions();

enum class Operators {
  standard,     // those of ONNX: any runtime takes them
  onnxruntime,  // its own where they are faster
};

/// What a file is laid out for. Any other processor runs it too, with the same values.
enum class Processor {
  any,
  x86_64,
};

struct OnnxSettings {
  int opset = 23;
  Operators operators = Operators::standard;
  Processor processor = Processor::any;
  bool optimize = true;       // false: the plain lowering
  bool keep_weights = false;  // as they are stored: no weight is wanted transposed
  std::optional<WeightQuantization> quantization = {};
  bool limits_in_graph = false;  // the program tests its inputs itself
  bool last_logits = false;      // who generates with it reads those of the last token alone
};
/// `context` is what fusions for onnxruntime need to know, and gets their notes.
ir::Graph to_onnx(const ir::Graph& graph, const OnnxSettings& settings, FusionContext& context);
ir::Graph to_onnx(const ir::Graph& graph, const OnnxSettings& settings);

}  // namespace modelport::passes
