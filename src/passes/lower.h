// A captured graph in the operators of a target: every node is replaced by what its row's cell
// says.
#pragma once

#include <variant>

#include "ir/graph.h"
#include "ops/executorch/storing.h"

namespace modelport::passes {

/// Nodes `onnx.Add`. Numbers among the outputs go. Conditions on data and assumptions become
/// assumptions that a value is true; a buffer that is written to gets an output more. Complex
/// inputs and outputs are pairs of reals.
struct OnnxTarget {
  int opset = 23;
  bool for_onnxruntime = false;  // operators of its own where they are faster
};
/// Nodes `et.aten.add.out`: the kernel's name, the arguments of the functional schema. Numbers,
/// conditions, assumptions and mutations stay what they are. Weights of embeddings are stored as
/// asked for; passes/xnnpack.h lets XNNPACK take over, and stores those of products.
struct ExecutorchTarget {
  ops::executorch::Storing storing = {};
};

/// Nodes as they are; the operators that torch does not know are taken apart.
struct Pt2Target {};

using Target = std::variant<OnnxTarget, ExecutorchTarget, Pt2Target>;

struct Contract;
/// What lower_to() gives for the target (passes/contract.h).
const Contract& contract_of(const Target& target);

/// Inputs, weights and outputs keep their names and types. Throws ExportError with every operator
/// that has no rule.
ir::Graph lower_to(const Target& target, const ir::Graph& graph);

}  // namespace modelport::passes
