// Pointwise operators with three operands: choices, interpolation and limits.
#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/pointwise.h"
#include "ops/onnx/binary.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"
#include "ops/xnnpack/pointwise.h"

namespace modelport::ops {
namespace {

Results lerp(Call& call) {
  return one(promote(call, {"self", "end"}), broadcast_args(call, {"self", "end", "weight"}));
}

Results addc(Call& call) {
  return one(promote(call, {"self", "tensor1", "tensor2"}),
             broadcast_args(call, {"self", "tensor1", "tensor2"}));
}

Results where(Call& call) {
  return one(promote(call, {"self", "other"}),
             broadcast_args(call, {"condition", "self", "other"}));
}

Results clamp(Call& call) {
  return one(promote(call, {"self", "min", "max"}), broadcast_args(call, {"self", "min", "max"}));
}

Results clamp_min(Call& call) {
  return one(promote(call, {"self", "min"}), broadcast_args(call, {"self", "min"}));
}

Results clamp_max(Call& call) {
  return one(promote(call, {"self", "max"}), broadcast_args(call, {"self", "max"}));
}

constexpr std::array kTernaryOps{
    OpDef{.name = "aten.addcdiv",
          .schema = "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
          .infer = addc,
          .onnx = custom(onnx::addcdiv),
          .executorch = decompose(parts::addcdiv),
          .samples = "f32[a, b], f32[b], f32[a, 1]; f32[], f32[a], f32[b, 1], value=0.5; f64[a], "
                     "f64[], f64[a]"},
    OpDef{.name = "aten.addcmul",
          .schema = "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
          .infer = addc,
          .onnx = custom(onnx::addcmul),
          .executorch = decompose(parts::addcmul),
          .samples = "f32[a, b], f32[b], f32[a, 1]; f32[], f32[a], f32[b, 1], value=2; i64[a], "
                     "i64[a], i64[]; f16[a], f16[], f16[a]"},
    OpDef{.name = "aten.clamp",
          .schema = "(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
          .infer = clamp,
          .onnx = custom(onnx::clamp),
          .xnnpack = custom(xnnpack::clamp),
          .samples = "f32[a, b], 0; i64[a], 0, 2; i64[a], 0.5; f16[], min=None, max=1; i32[a], "
                     "max=1.5; i64[a], 0, a; f32[a], -0.5, 0.5; bf16[a], -1, 1; i64[a], max=2"},
    OpDef{.name = "aten.clamp.Tensor",
          .schema = "(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
          .infer = clamp,
          .onnx = custom(onnx::clamp),
          .samples = "f32[a, b], f32[b], f32[a, 1]; i64[a], None, f32[]; f16[a, b], f16[]; i64[a], "
                     "i64[b, 1]; f32[a], f32[], f32[]"},
    OpDef{.name = "aten.clamp_max",
          .schema = "(Tensor self, Scalar max) -> Tensor",
          .infer = clamp_max,
          .onnx = custom(onnx::clamp),
          .executorch = decompose(parts::at_most),
          .xnnpack = custom(xnnpack::clamp),
          .samples = "f32[a, b], 0; i64[a], 1; i64[a], 0.5; f16[], 1e-6; i64[a], a"},
    OpDef{.name = "aten.clamp_max.Tensor",
          .schema = "(Tensor self, Tensor max) -> Tensor",
          .infer = clamp_max,
          .onnx = custom(onnx::clamp),
          .executorch = decompose(parts::at_most),
          .samples = "f32[a, b], f32[b]; i64[a], f32[]; i64[a], i64[b, 1]"},
    OpDef{.name = "aten.clamp_min",
          .schema = "(Tensor self, Scalar min) -> Tensor",
          .infer = clamp_min,
          .onnx = custom(onnx::clamp),
          .executorch = decompose(parts::at_least),
          .xnnpack = custom(xnnpack::clamp),
          .samples = "f32[a, b], 0; i64[a], 1; i64[a], 0.5; f16[], 1e-6"},
    OpDef{.name = "aten.clamp_min.Tensor",
          .schema = "(Tensor self, Tensor min) -> Tensor",
          .infer = clamp_min,
          .onnx = custom(onnx::clamp),
          .executorch = decompose(parts::at_least),
          .samples = "f32[a, b], f32[b]; i64[a], f32[]; i64[a], i64[b, 1]"},
    OpDef{.name = "aten.lerp.Scalar",
          .schema = "(Tensor self, Tensor end, Scalar weight) -> Tensor",
          .infer = lerp,
          .onnx = custom(onnx::lerp),
          .executorch = decompose(parts::lerp),
          .samples = "f32[a, b], f32[b], 0.5; f16[], f16[a], 0.25; f32[a], f32[a], 0.25"},
    OpDef{.name = "aten.lerp.Tensor",
          .schema = "(Tensor self, Tensor end, Tensor weight) -> Tensor",
          .infer = lerp,
          .onnx = custom(onnx::lerp),
          .executorch = decompose(parts::lerp),
          .samples = "f32[a, b], f32[b], f32[a, 1]; f32[], f32[a], f32[]"},
    OpDef{.name = "aten.where.Scalar",
          .schema = "(Tensor condition, Scalar self, Scalar other) -> Tensor",
          .infer = where,
          .onnx = custom(onnx::where),
          .executorch = decompose(parts::where),
          .samples = "bool[a, b], 1.0, 0; bool[], True, False; bool[a], 1, 0"},
    OpDef{.name = "aten.where.ScalarOther",
          .schema = "(Tensor condition, Tensor self, Scalar other) -> Tensor",
          .infer = where,
          .onnx = custom(onnx::where),
          .executorch = decompose(parts::where),
          .samples = "bool[a, 1], f32[a, b], 0; bool[a], i64[], 1.5; bool[a, b], f16[b], -1e9"},
    OpDef{.name = "aten.where.ScalarSelf",
          .schema = "(Tensor condition, Scalar self, Tensor other) -> Tensor",
          .infer = where,
          .onnx = custom(onnx::where),
          .executorch = decompose(parts::where),
          .samples = "bool[a, 1], 0, f32[a, b]; bool[a], 1.5, i64[]; bool[a, b], 0.0, f16[b]"},
    OpDef{.name = "aten.where.self",
          .schema = "(Tensor condition, Tensor self, Tensor other) -> Tensor",
          .infer = where,
          .onnx = custom(onnx::where),
          .pairs = decompose(parts::pairs_choice),
          .samples = "bool[a, 1], f32[b], f32[]; bool[a, b], i64[b], f32[]; bool[], i64[a], 2; "
                     "bool[a], 1.0, f16[b, a]; bool[a], i32[a], i64[a]; bool[a], bool[a], bool[]; "
                     "bool[a], c64[a], c64[]; bool[a], bf16[a], bf16[a]; bool[a], i16[a], i16[a]"},
};
static_assert(first_bad_row(kTernaryOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> ternary_ops() { return kTernaryOps; }

}  // namespace modelport::ops
