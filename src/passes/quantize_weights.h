// Weights of products and embeddings in few bits, for onnxruntime's kernels that take them so.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/graph.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {

struct WeightQuantization {
  int bits = 4;              // 4 or 8
  std::int64_t block = 32;   // columns that share a scale
  bool zero_points = false;  // one a block; without them codes are around their middle
  bool search = true;        // scales by the least squared error, not by the largest weight
  int accuracy_level = 4;    // 4: the kernel rounds inputs to 8 bits, 0: it does not
};

/// A product with a transposed weight becomes MatMulNBits, an embedding GatherBlockQuantized, on a
/// node `modelport.quantized` that writers turn into stored tensors. A weight that is both is
/// stored once.
void quantize_weights(ir::Graph& graph, const WeightQuantization& how, FusionContext& context);

}  // namespace modelport::passes
