// The tensors that a model brings along: weights, and the constants of the graph.
#pragma once

#include <string>
#include <vector>

#include "backends/onnx/value_names.h"
#include "backends/onnx/writer.h"

namespace modelport::onnx {

struct Initializer {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  const weights::Weight* weight = nullptr;  // null: a constant of the graph, or left out
  bool transposed = false;
  bool is_state = false;  // a run changes it
  std::string raw;        // of constants
  std::uint64_t bytes = 0;

  bool is_constant() const { return weight == nullptr; }
  weights::ConversionCounts stream(weights::Sink& sink) const;
};

/// In the order of the graph: weights, then constants.
struct Initializers {
  std::vector<Initializer> all;
  std::vector<bool> stored;  // by node: what it gives is an initializer, not a node of the file
};
Initializers initializers_of(const OnnxRequest& request, ValueNames& names);

}  // namespace modelport::onnx
