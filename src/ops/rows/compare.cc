// Comparisons and logical operators: the result is bool.
#include "ops/onnx/compare.h"

#include <array>

#include "ops/decompositions/pointwise.h"
#include "ops/rules/pointwise.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

constexpr std::array kCompareOps{
    OpDef{.name = "aten.eq.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_eq),
          .samples = "f32[a, b], 0; i64[a], 1.5; bool[], 1; i64[a, b], b"},
    OpDef{.name = "aten.eq.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_eq),
          .samples = "f32[a, b], f32[b]; i64[a, 1], f32[1, b]; i64[a], 2; bool[], f16[a]; f32[], "
                     "f32[]; c64[a], c64[a]; u8[a], u8[a]; bf16[a], bf16[a]"},
    OpDef{.name = "aten.ge.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_ge),
          .samples = "f32[a, b], 0; i64[a], 1.5; bool[], 1; i64[a, b], b"},
    OpDef{.name = "aten.ge.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_ge),
          .samples =
              "f32[a, b], f32[b]; i64[a, 1], f32[1, b]; i64[a], 2; bool[], f16[a]; f32[], f32[]"},
    OpDef{.name = "aten.gt.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_gt),
          .samples = "f32[a, b], 0; i64[a], 1.5; bool[], 1; i64[a, b], b"},
    OpDef{.name = "aten.gt.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_gt),
          .samples =
              "f32[a, b], f32[b]; i64[a, 1], f32[1, b]; i64[a], 2; bool[], f16[a]; f32[], f32[]"},
    OpDef{.name = "aten.isclose",
          .schema = "(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float "
                    "atol=1e-08, bool equal_nan=False) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::isclose),
          .executorch = decompose(parts::isclose),
          .samples = "f32[a, b], f32[b]; f32[], f32[a], rtol=0.5; i64[a], i64[a]; f32[a], f32[a], "
                     "equal_nan=True"},
    OpDef{.name = "aten.le.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_le),
          .samples = "f32[a, b], 0; i64[a], 1.5; bool[], 1; i64[a, b], b"},
    OpDef{.name = "aten.le.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_le),
          .samples =
              "f32[a, b], f32[b]; i64[a, 1], f32[1, b]; i64[a], 2; bool[], f16[a]; f32[], f32[]"},
    OpDef{.name = "aten.logical_and",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::logical_and),
          .samples = "bool[a, b], bool[b]; f32[a, 1], i64[b]; bool[], bool[a]"},
    OpDef{.name = "aten.logical_or",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::logical_or),
          .samples = "bool[a, b], bool[b]; f32[a, 1], i64[b]; bool[], bool[a]"},
    OpDef{.name = "aten.logical_xor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::logical_xor),
          .samples = "bool[a, b], bool[b]; f32[a, 1], i64[b]; bool[], bool[a]"},
    OpDef{.name = "aten.lt.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_lt),
          .samples = "f32[a, b], 0; i64[a], 1.5; bool[], 1; i64[a, b], b; bf16[a], 0.1; u8[a], 1"},
    OpDef{.name = "aten.lt.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_lt),
          .samples =
              "f32[a, b], f32[b]; i64[a, 1], f32[1, b]; i64[a], 2; bool[], f16[a]; f32[], f32[]"},
    OpDef{.name = "aten.ne.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_ne),
          .samples = "f32[a, b], 0; i64[a], 1.5; bool[], 1; i64[a, b], b"},
    OpDef{.name = "aten.ne.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = compare,
          .onnx = custom(onnx::compare_ne),
          .samples =
              "f32[a, b], f32[b]; i64[a, 1], f32[1, b]; i64[a], 2; bool[], f16[a]; f32[], f32[]"},
};
static_assert(first_bad_row(kCompareOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> compare_ops() { return kCompareOps; }

}  // namespace modelport::ops
