// The call that is being lowered, in ONNX: which cell, and operands as values.
#include "ops/onnx/lower.h"

#include <fmt/format.h>

#include "ops/onnx/kernels.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {

Lower::Lower(ir::Graph& graph, shape::Dims& dims, Settings settings)
    : Emitter(graph, dims,
              {.name = "onnx",
               .ways_out = {"export to pt2", "add a cell: docs/adding-an-operator.md"}}),
      settings_(settings),
      numbers_(*this) {}

std::string_view Lower::refusal(const OpDef& op) const {
  const auto* refused = std::get_if<Refuse>(&op.onnx);
  return refused == nullptr ? std::string_view() : refused->reason;
}

Values Lower::lower_row(const OpDef& op) {
  return lower_by(op.onnx, *this, [&](std::string_view onnx_op) { return direct_call(onnx_op); });
}

Values Lower::direct_call(std::string_view onnx_op) {
  const Dtype own = result().dtype;
  if (is_complex(own)) refuse("no rule for complex numbers");
  const Dtype wide = kernel_dtype(onnx_op, own);
  Values inputs;
  for (const Parameter& parameter : schema_of(call().op()).parameters) {
    if (parameter.type != "Tensor") continue;
    inputs.push_back(in(parameter.name, wide));
  }
  return {cast(emit(onnx_op, inputs, {}, {wide, result().shape}), own)};
}

Value Lower::in(std::string_view name) {
  const ir::Arg& arg = call().arg(name);
  if (arg.is_none()) return kNoValue;
  if (const Value* value = arg.get<Value>()) return *value;
  return number_of(arg);
}

Value Lower::in(std::string_view name, Dtype dtype) {
  const ir::Arg& arg = call().arg(name);
  if (arg.is_none()) return kNoValue;
  if (const Value* value = arg.get<Value>()) return cast(*value, dtype);
  return number_of(arg, dtype);
}

Value Lower::number_of(const ir::Arg& arg, std::optional<Dtype> dtype) {
  if (const bool* truth = arg.get<bool>())
    return number(std::int64_t{*truth}, dtype.value_or(Dtype::boolean));
  if (const double* real = arg.get<double>()) return number(*real, dtype.value_or(Dtype::f64));
  if (const Int* x = arg.get<Int>()) {
    const auto constant = x->constant();
    if (constant) return number(*constant, dtype.value_or(Dtype::i64));
    return cast(scalar(*x), dtype.value_or(Dtype::i64));
  }
  if (const auto* real = arg.get<shape::Real>())
    return cast(squeeze(numbers_.real(*real), {0}), dtype.value_or(Dtype::f64));
  if (const auto* truth = arg.get<shape::Bool>())
    return cast(squeeze(numbers_.truth(*truth), {0}), dtype.value_or(Dtype::boolean));
  if (const Value* value = arg.get<Value>()) return dtype ? cast(*value, *dtype) : *value;
  throw InternalError(fmt::format("{}: an argument that is no number", call().op().name));
}

}  // namespace modelport::ops::onnx
