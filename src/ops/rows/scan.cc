// Running sums, products and extremes along an axis, and recurrences.
#include "ops/onnx/scan.h"

#include <array>

#include "ops/decompositions/reduce.h"
#include "ops/executorch/guarded.h"
#include "ops/rules/axes.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results running_sum(Call& call) {
  const ir::TensorType& self = call.tensor("self");
  axis_of(call, "dim", call.rank("self"));
  const bool whole = is_integral(self.dtype) || self.dtype == Dtype::boolean;
  return one(call.dtype("dtype").value_or(whole ? Dtype::i64 : self.dtype), self.shape);
}

Results running_extreme(Call& call) {
  const ir::TensorType& self = call.tensor("self");
  axis_of(call, "dim", call.rank("self"));
  return {self, ir::TensorType{Dtype::i64, self.shape}};
}

Results cumulative_trapezoid(Call& call) {
  ir::TensorType type = call.tensor("y");
  const auto axis = static_cast<std::size_t>(axis_of(call, "dim", call.rank("y")));
  type.dtype = to_floating(type.dtype);
  type.shape[axis] -= 1;
  return {std::move(type)};
}

/// The decomposition has as many doubling steps as that takes.
constexpr std::int64_t kMostPlaces = 65536;

Results recurrence(Call& call) {
  const ir::TensorType& input = call.tensor("input");
  const ir::TensorType& decay = call.tensor("decay");
  const auto axis = static_cast<std::size_t>(axis_of(call, "dim", call.rank("input")));
  call.require(decay.dtype == input.dtype, "decay and input are of one type");
  call.require(decay.shape.size() == input.shape.size(), "decay and input have the same axes");
  for (std::size_t i = 0; i < input.shape.size(); ++i)
    call.require(call.equal(decay.shape[i], input.shape[i]), "decay and input differ in size");
  call.require(call.at_least(Int(kMostPlaces), input.shape[axis]),
               "a recurrence goes over 65536 places at most");
  if (call.has("state")) {
    const Shape& state = call.shape("state");
    call.require(state.size() + 1 == input.shape.size(), "the state has all axes but `dim`");
    for (std::size_t i = 0; i < state.size(); ++i)
      call.require(call.equal(state[i], input.shape[i < axis ? i : i + 1]),
                   "the state differs in size from the input");
  }
  return {input};
}

constexpr std::array kScanOps{
    OpDef{.name = "aten.cummax",
          .schema = "(Tensor self, int dim) -> (Tensor values, Tensor indices)",
          .infer = running_extreme,
          .onnx = custom(onnx::cummax),
          .executorch = decompose(parts::cummax),
          .samples =
              "f32[a, b], 1; i32[a, b, c], -2; f32[], 0; f32[a, b, c], 0; i64[a], 0; bf16[a], 0"},
    OpDef{.name = "aten.cummin",
          .schema = "(Tensor self, int dim) -> (Tensor values, Tensor indices)",
          .infer = running_extreme,
          .onnx = custom(onnx::cummin),
          .executorch = decompose(parts::cummin),
          .samples =
              "f32[a, b], 1; i32[a, b, c], -2; f32[], 0; f32[a, b, c], 0; i64[a], 0; bf16[a], 0"},
    OpDef{.name = "aten.cumprod",
          .schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
          .infer = running_sum,
          .onnx = custom(onnx::cumprod),
          .executorch = decompose(parts::cumprod),
          .samples = "f32[a, b], 1; i32[a, b, c], -2; bool[a], 0; f16[a], 0, dtype=f32; i64[], 0; "
                     "f32[a, b, c], 0"},
    OpDef{.name = "aten.cumsum",
          .schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
          .infer = running_sum,
          .onnx = custom(onnx::cumsum),
          .executorch = custom(executorch::cumsum),
          .samples = "f32[a, b], 1; i32[a, b, c], -2; bool[a], 0; f16[a], 0, dtype=f32; i64[], 0; "
                     "c64[a, b], 0; bf16[a, b], 1"},
    OpDef{.name = "aten.cumulative_trapezoid.dx",
          .schema = "(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
          .infer = cumulative_trapezoid,
          .onnx = custom(onnx::cumulative_trapezoid),
          .executorch = decompose(parts::cumulative_trapezoid),
          .samples = "f32[a, b]; f64[a, b, c], dx=2, dim=0"},
    OpDef{.name = "aten.logcumsumexp",
          .schema = "(Tensor self, int dim) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::logcumsumexp),
          .executorch = decompose(parts::logcumsumexp),
          .samples = "f32[a, b], 1; f64[a, b, c], -2; f32[], 0"},
    // What loops over time compute, one place after the other: state = decay * state + input, and
    // state = max(decay + state, input).
    OpDef{.name = "modelport.linear_recurrence",
          .schema = "(Tensor decay, Tensor input, Tensor? state, int dim) -> Tensor",
          .infer = recurrence,
          .onnx = custom(onnx::linear_recurrence),
          .executorch = decompose(parts::linear_recurrence),
          .samples = "f32[a, b], f32[a, b], None, 1; f32[a, b, c], f32[a, b, c], f32[a, c], -2; "
                     "f64[a, b], f64[a, b], f64[b], 0; bf16[a, b], bf16[a, b], bf16[a], 1; "
                     "f32[a, 1, b], f32[a, 1, b], f32[a, b], 1; f32[a, 1], f32[a, 1], None, 1; "
                     "f32[6, b], f32[6, b], f32[b], 0"},
    OpDef{.name = "modelport.maximum_recurrence",
          .schema = "(Tensor decay, Tensor input, Tensor? state, int dim) -> Tensor",
          .infer = recurrence,
          .onnx = custom(onnx::maximum_recurrence),
          .executorch = decompose(parts::maximum_recurrence),
          .samples = "f32[a, b], f32[a, b], None, 1; f32[a, b, c], f32[a, b, c], f32[a, c], -2; "
                     "f16[a, b], f16[a, b], f16[b], 0; f32[a, 1, b], f32[a, 1, b], f32[a, b], 1"},
};
static_assert(first_bad_row(kScanOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> scan_ops() { return kScanOps; }

}  // namespace modelport::ops
