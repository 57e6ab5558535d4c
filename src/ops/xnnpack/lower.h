// Builds nodes of XNNPACK in our own IR, `xnn.FullyConnected`, among calls of ExecuTorch's kernels:
// a row's xnnpack cell is tried first, and what it leaves goes to the executorch cell. XNNPACK
// computes in f32, reads shapes when it runs, and can infer one size of a reshape.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "ops/executorch/lower.h"

namespace modelport::ops::xnnpack {

using Axes = std::vector<std::int64_t>;

/// Why calls of a row stay with the kernels, and how many do.
struct Left {
  std::string_view op;
  std::string why;
  auto operator<=>(const Left&) const = default;
};

class Lower : public executorch::Lower {
 public:
  Lower(ir::Graph& graph, shape::Dims& dims, const executorch::Storing& storing)
      : executorch::Lower(graph, dims, storing) {}

  /// Whether cells of XNNPACK are tried in the calls that follow.
  void allow(bool allowed) { allowed_ = allowed; }
  const std::map<Left, std::size_t>& left() const { return left_; }

  // --- for cells --------------------------------------------------------------------------------
  /// What a cell returns that leaves its call to the kernels.
  Values leave(std::string_view why);
  /// A weight, or a tensor that is written out.
  bool is_constant(Value x) const;
  /// Whether a node can have it as an operand: f32 with one to six axes, or a constant without any.
  bool takes(Value x) const;
  /// The result of the call is f32 with one to six axes.
  bool takes_result() const;
  /// The operand as nodes take it, numbers beside tensors too; kNoValue where they do not.
  Value real(std::string_view name);
  /// A constant of one element.
  Value real(double number) { return constant(Dtype::f32, {1}, {number}); }

  // --- nodes ------------------------------------------------------------------------------------
  /// A node; the one that is there already if it has the same operands.
  Value node(std::string_view name, std::vector<ir::NamedArg> args, ir::TensorType type);
  Value unary(std::string_view name, Value x, std::vector<ir::NamedArg> args = {});
  Value binary(std::string_view name, Value a, Value b);
  Value clamped(Value x, double least, double most);
  /// Axis i of the result is axis order[i] of x.
  Value transposed(Value x, const Axes& order);
  /// kNoValue where XNNPACK cannot tell the sizes.
  Value reshaped(Value x, const Shape& shape);
  /// From `start` on along the axis, as many elements as the shape has there.
  Value sliced(Value x, std::int64_t axis, std::int64_t start, const Int& size);
  /// The sum of the last axis times a factor, the axis kept.
  Value row_sum(Value x, double factor);
  /// The product of matrices; with `b_transposed` b is [..., n, k].
  Value product(Value a, Value b, bool b_transposed);
  Value softmax(Value x);

  /// What attention adds to its scores, and what it multiplies its result with (kNoValue: 1).
  struct Mask {
    Value added = kNoValue;
    Value seen = kNoValue;
  };
  std::map<std::string, Mask>& masks() { return masks_; }

 protected:
  Values lower_row(const OpDef& op) override;

 private:
  Values pointwise(std::string_view name);
  /// The node that makes a value by moving axes of another; nullptr for any other value.
  const ir::Node* transpose_of(Value x) const;

  bool allowed_ = true;
  std::unordered_map<std::string, Value> known_;
  std::map<std::string, Mask> masks_;
  std::map<Left, std::size_t> left_;
};

inline constexpr std::int64_t kMostAxes = 6;

}  // namespace modelport::ops::xnnpack
