// Arithmetic as calls of other rows.
#include "ops/decompositions/terms.h"

#include <fmt/format.h>

#include "ops/rules/rules.h"

namespace modelport::ops::parts {

Dtype working_dtype(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 ? Dtype::f32 : dtype;
}

Value Terms::of(std::string_view name, Value x) {
  return e.call(fmt::format("aten.{}", name), {x});
}

Value Terms::is(std::string_view name, Value x, const Operand& other) {
  const bool tensor = other.arg.get<Value>() != nullptr;
  return e.call(fmt::format("aten.{}.{}", name, tensor ? "Tensor" : "Scalar"), {x, other});
}

Value Terms::in(std::string_view name, Dtype dtype) {
  if (const Value x = e.tensor(name); x != kNoValue) return cast(x, dtype);
  if (!e.has(name)) return kNoValue;
  Operand number = e.arg(name);
  // ExecuTorch's kernel takes no number that the type does not hold.
  if (const Int* whole = number.arg.get<Int>(); whole != nullptr && whole->constant())
    number = Operand(emit::wrapped(*whole->constant(), dtype));
  return e.call("aten.scalar_tensor", {number}, {{"dtype", dtype}});
}

Value Terms::filled(const Shape& shape, const Operand& number, Dtype dtype) {
  return e.call("aten.full", {shape, number}, {{"dtype", dtype}});
}

Value Terms::size(const Int& size, Dtype dtype) {
  return e.call("aten.scalar_tensor", {size}, {{"dtype", dtype}});
}

Value Terms::flat(Value x) { return e.rank(x) == 1 ? x : reshape(x, {numel(e.shape(x))}); }

Value Terms::over(std::string_view name, Value x, const Operand& axes, bool keepdim) {
  return e.call(fmt::format("aten.{}", name), {x, axes, keepdim});
}

bool has_parameter(Emitter& e, std::string_view name) {
  return schema_of(e.call().op()).find(name) != nullptr;
}

std::vector<std::int64_t> axes_of_call(Emitter& e, std::int64_t rank) {
  const bool given = has_parameter(e, "dim") && e.has("dim");
  if (given && e.call().arg("dim").get<ir::ArgList>() == nullptr) return {e.axis("dim", rank)};
  std::vector<std::int64_t> axes;
  if (given) axes = axes_of(e.call(), "dim", rank);
  if (axes.empty())
    for (std::int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

bool keeps_axes(Emitter& e) { return has_parameter(e, "keepdim") && e.call().flag("keepdim"); }

Operand axis_list(const std::vector<std::int64_t>& axes) { return emit::int_list(axes); }

}  // namespace modelport::ops::parts
