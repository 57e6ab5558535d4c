// The tensors that a model brings along: weights, and the constants of the graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/onnx/value_names.h"
#include "backends/onnx/writer.h"
#include "weights/quantize/error_feedback.h"
#include "weights/quantize/scheme.h"

namespace modelport::onnx {

/// A weight that is written in few bits: its codes, and what makes numbers of them.
class QuantizedTensors {
 public:
  enum class Part { codes, scales, zero_points };
  enum class Order {
    plain,
    transposed,   // rows of codes, a byte each, are columns of what is written
    interleaved,  // of each matrix, rows of its halves take turns
  };
  /// `inputs` of its products, or null.
  QuantizedTensors(weights::Weight weight, const weights::Scheme& scheme, Order order,
                   const weights::InputFacts* inputs)
      : weight_(std::move(weight)), scheme_(scheme), order_(order), inputs_(inputs) {}
  /// Codes are quantized on their way; what belongs to them is kept until it is asked for.
  void stream(Part part, weights::Sink& sink);

 private:
  void write(std::span<const std::byte> bytes, weights::Sink& sink) const;

  weights::Weight weight_;
  weights::Scheme scheme_;
  Order order_ = Order::plain;
  const weights::InputFacts* inputs_ = nullptr;
  std::optional<std::vector<std::byte>> scales_, zero_points_;
};

struct Initializer {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  const weights::Weight* weight = nullptr;  // null: a constant of the graph, or left out
  bool transposed = false;
  bool is_state = false;  // a run changes it
  bool left_out = false;  // an input that callers give
  std::shared_ptr<QuantizedTensors> quantized = {};
  QuantizedTensors::Part part = QuantizedTensors::Part::codes;  // of what is quantized
  std::vector<Initializer> parts = {};  // one after the other, where it is made of several
  std::string raw;                      // of constants
  std::uint64_t bytes = 0;

  bool is_constant() const { return weight == nullptr; }
  /// Of one that has no parts.
  weights::ConversionCounts stream(weights::Sink& sink) const;
};

/// In the order of the graph: weights, then constants.
struct Initializers {
  std::vector<Initializer> all;
  std::vector<bool> stored;  // by node: what it gives is an initializer, not a node of the file
};
Initializers initializers_of(const OnnxRequest& request, ValueNames& names);

}  // namespace modelport::onnx
