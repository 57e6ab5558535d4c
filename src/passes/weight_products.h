// Products with a weight, and embeddings, as graphs of ONNX operators have them.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace modelport::passes {

/// Smaller weights are not worth a kernel for few bits.
inline constexpr std::int64_t kLeastWeight = 1 << 10;

/// The matrix of weights that the node transposes, or nothing.
ir::ValueId weight_transposed_by(const ir::Graph& graph, const ir::Node& node);

/// `input` times the transpose of `weight`, plus `bias` where there is one.
struct WeightProduct {
  ir::ValueId input, weight, bias;
  bool turned = false;  // the weight has its columns where others have rows, and is not transposed
};
/// MatMul with a transposed weight, or Gemm that transposes it.
std::optional<WeightProduct> weight_product(const ir::Graph& graph, const ir::Node& node);
/// The same, or one with a weight as it is.
std::optional<WeightProduct> any_weight_product(const ir::Graph& graph, const ir::Node& node);
/// The weight whose rows the node looks up, or nothing.
ir::ValueId looked_up(const ir::Graph& graph, const ir::Node& node);
/// A parameter that is a matrix of known size and not small; in fp32, or in fp16 too.
bool is_weight_matrix(const ir::Graph& graph, ir::ValueId id, bool halves);

}  // namespace modelport::passes
