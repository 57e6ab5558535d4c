// Weights of products and embeddings in few bits, for onnxruntime's kernels that take them so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {

/// What notes call it.
inline constexpr std::string_view kWeightsInFewBits = "weights in few bits";

/// What becomes of the inputs of products.
enum class InputCodes : std::uint8_t {
  none,      // they stay floats; blocks of a row of the weight have scales
  per_call,  // 8 bits by the range of each call; the weight has a scale for each row
  fixed,     // the same by ranges that are known
  measured,  // nothing is quantized: the graph gives the ranges as further outputs
};

struct Range {
  double low = 0, high = 0;
};

/// Codes that the checkpoint has already: weights `name.codes`, `name.scales`, `name.zero_points`.
struct StoredCodes {
  int bits = 4;
  std::int64_t block = 32;
  bool zero_points = false;
};

struct WeightQuantization {
  int bits = 4;              // 4 or 8
  std::int64_t block = 32;   // columns that share a scale
  bool zero_points = false;  // one a block; without them codes are around their middle
  bool search = true;        // scales by the least squared error, not by the largest weight
  int accuracy_level = 4;    // 4: the kernel rounds inputs to 8 bits, 0: it does not
  bool own_gather = true;    // embeddings by onnxruntime's kernel, or by standard operators
  InputCodes inputs = InputCodes::none;
  std::vector<Range> ranges = {};  // of the inputs, in the order in which they were measured
  std::map<std::string, StoredCodes> stored = {};
  bool only_stored = false;  // all other weights stay floats
  /// Bits of single weights; of 0 bits they stay floats.
  std::map<std::string, int> layers = {};

  int bits_of(const std::string& weight) const {
    const auto own = layers.find(weight);
    return own == layers.end() ? bits : own->second;
  }
};

/// A product with a transposed weight becomes MatMulNBits, an embedding GatherBlockQuantized or
/// what computes the same, on a node `modelport.quantized` that writers turn into stored tensors.
/// A weight that is both is stored once.
void quantize_weights(ir::Graph& graph, const WeightQuantization& how, FusionContext& context);

/// Products on 8-bit inputs and weights: DynamicQuantizeLinear and MatMulInteger, or with known
/// ranges QuantizeLinear and DequantizeLinear around MatMul, which onnxruntime makes one kernel of.
/// Embeddings have a scale for each row.
void quantize_products(ir::Graph& graph, const WeightQuantization& how, FusionContext& context);

}  // namespace modelport::passes
