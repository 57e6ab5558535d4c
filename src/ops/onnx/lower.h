// Builds ONNX nodes in our own IR, one call of an operator after the other. ONNX cells of the
// operator table are written against this: the emitter's calls and constants, typed nodes, sizes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ops/emit/emitter.h"
#include "ops/onnx/numbers.h"

namespace modelport::ops::onnx {

using emit::int_list;

struct Attribute {
  std::string name;
  ir::Arg value;
};
using Attributes = std::vector<Attribute>;

class Lower : public emit::Emitter {
 public:
  struct Settings {
    int opset = 23;
    bool for_onnxruntime = false;
  };
  Lower(ir::Graph& graph, shape::Dims& dims, Settings settings);

  std::string_view refusal(const OpDef& op) const override;
  int opset() const { return settings_.opset; }
  /// Whether operators may be onnxruntime's own.
  bool for_onnxruntime() const { return settings_.for_onnxruntime; }

  // --- operands as values of ONNX ---------------------------------------------------------------
  /// A tensor; a number in its place as a constant without axes; kNoValue for None.
  Value in(std::string_view name);
  Value in(std::string_view name, Dtype dtype);
  /// A number as a constant: bool, i64 or f64 by what it is, or of this type.
  Value number_of(const ir::Arg& arg, std::optional<Dtype> dtype = std::nullopt);

  // --- nodes ------------------------------------------------------------------------------------
  Value emit(std::string_view op, const Values& inputs, const Attributes& attributes,
             ir::TensorType type);
  /// With the type of the call's (first) result.
  Value emit(std::string_view op, const Values& inputs, const Attributes& attributes = {}) {
    return emit(op, inputs, attributes, result());
  }
  Values emit_many(std::string_view op, const Values& inputs, const Attributes& attributes,
                   std::vector<ir::TensorType> types);

  // --- numbers and sizes ------------------------------------------------------------------------
  Value number(double value, Dtype dtype);  // without axes
  Value number(std::int64_t value, Dtype dtype);
  Value size(const Int& x) { return numbers_.size(x); }              // i64[1]
  Value sizes(const Shape& shape) { return numbers_.sizes(shape); }  // i64[n]
  Value scalar(const Int& x);                                        // i64[]
  Numbers& numbers() { return numbers_; }

  // --- what most cells need ---------------------------------------------------------------------
  Value cast(Value x, Dtype dtype);
  Value unary(std::string_view op, Value x);             // type of x
  Value binary(std::string_view op, Value a, Value b);   // Add, Mul ...: type of a
  Value compare(std::string_view op, Value a, Value b);  // Equal, Less ...: bool
  Value logical_not(Value x);
  Value where(Value condition, Value a, Value b);
  Value add(Value a, Value b) { return binary("Add", a, b); }
  Value sub(Value a, Value b) { return binary("Sub", a, b); }
  Value mul(Value a, Value b) { return binary("Mul", a, b); }
  Value div(Value a, Value b) { return binary("Div", a, b); }
  Value reduce(std::string_view op, Value x, const std::vector<std::int64_t>& axes, bool keepdim);
  Value matmul(Value a, Value b);

  Value reshape(Value x, const Shape& shape);
  Value expand(Value x, const Shape& shape);  // axes of size 1 grow, axes in front are added
  Value transpose(Value x, const std::vector<std::int64_t>& order);
  Value swap_axes(Value x, std::int64_t a, std::int64_t b);
  Value unsqueeze(Value x, const std::vector<std::int64_t>& axes);  // axes of the result
  Value squeeze(Value x, const std::vector<std::int64_t>& axes);
  /// Elements start, start + step, ... below end; bounds as Python has them, but inside the axis.
  Value slice(Value x, std::int64_t axis, const Int& start, const Int& end, const Int& step = 1);
  Value concat(const Values& parts, std::int64_t axis);
  Value gather(Value x, Value indices, std::int64_t axis);
  /// 0, 1, ... n - 1
  Value range(const Int& n);
  /// A tensor of this shape, all `value` (which has no axes).
  Value filled(Value value, const Shape& shape);

  // --- complex numbers --------------------------------------------------------------------------
  bool has_transform(const Int& n, Dtype dtype) const override;                 // fourier.cc
  Values transform(const Values& signal, const Int& n, bool inverse) override;  // fourier.cc
  Value real_part(Value complex);
  Value imaginary_part(Value complex);
  Value make_complex(Value real, Value imaginary);

  /// The shape that sizes broadcast to, as far as their form tells.
  Shape broadcast_shape(const Shape& a, const Shape& b) const;

 protected:
  Values lower_row(const OpDef& op) override;
  Value add_constant(ir::TensorType type, std::vector<ir::NamedArg> contents) override;

 private:
  Values direct_call(std::string_view onnx_op);

  Settings settings_;
  Numbers numbers_;
};

/// A value as the node's result: in its type.
inline Values done(Lower& l, Value x, std::size_t result = 0) {
  return {l.cast(x, l.result(result).dtype)};
}

}  // namespace modelport::ops::onnx
