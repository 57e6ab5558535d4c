// Sorting, and searching in what is sorted.
#include <array>

#include "ops/decompositions/indexing.h"
#include "ops/onnx/sort.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

Results with_indices(Dtype dtype, const Shape& shape) {
  return {ir::TensorType{dtype, shape}, ir::TensorType{Dtype::i64, shape}};
}

Results sort(Call& call) { return with_indices(call.dtype_of("self"), call.shape("self")); }

Results argsort(Call& call) { return one(Dtype::i64, call.shape("self")); }

Results topk(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  return with_indices(call.dtype_of("self"),
                      with_size(call.shape("self"), axis, call.integer("k")));
}

Results kthvalue(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  return with_indices(call.dtype_of("self"),
                      reduce(call.shape("self"), {axis}, call.flag("keepdim")));
}

Results positions(Call& call) {
  const Dtype dtype = call.flag("out_int32") ? Dtype::i32 : Dtype::i64;
  return one(dtype, call.is_tensor("self") ? call.shape("self") : Shape{});
}

Results isin(Call& call) {
  return one(Dtype::boolean,
             call.op().name == "aten.isin.Scalar_Tensor" ? Shape{} : call.shape("elements"));
}

constexpr std::array kSearchOps{
    OpDef{.name = "aten.argsort",
          .schema = "(Tensor self, int dim=-1, bool descending=False) -> Tensor",
          .infer = argsort,
          .onnx = custom(onnx::argsort),
          .executorch = decompose(parts::argsort),
          .samples = "f32[a, b]; i64<9>[a, b, 3], 1, True"},
    OpDef{.name = "aten.argsort.stable",
          .schema = "(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
          .infer = argsort,
          .onnx = custom(onnx::argsort),
          .executorch = decompose(parts::argsort),
          .samples = "f32[a, b], stable=True; i64<9>[a, b, 3], stable=True, dim=1"},
    OpDef{
        .name = "aten.bucketize.Scalar",
        .schema =
            "(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        .infer = positions,
        .onnx = custom(onnx::bucketize),
        .executorch = decompose(parts::bucketize),
        .samples = "0.5, f32[a]; 2, f32[4], out_int32=True"},
    OpDef{
        .name = "aten.bucketize.Tensor",
        .schema =
            "(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
        .infer = positions,
        .onnx = custom(onnx::bucketize),
        .executorch = decompose(parts::bucketize),
        .samples = "f32[a, b], f32[4]; i64<5>[a], i64[b], out_int32=True, right=True; i64<5>[a], "
                   "f32[b]; f32[a], i64<9>[b]; f32[], f32[b]"},
    OpDef{.name = "aten.isin.Scalar_Tensor",
          .schema = "(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
                    "invert=False) -> Tensor",
          .infer = isin,
          .onnx = custom(onnx::isin),
          .executorch = decompose(parts::isin),
          .samples = "3, i64<5>[a, b]; 0.5, f32[a]"},
    OpDef{.name = "aten.isin.Tensor_Scalar",
          .schema = "(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
                    "invert=False) -> Tensor",
          .infer = isin,
          .onnx = custom(onnx::isin),
          .executorch = decompose(parts::isin),
          .samples = "i64<5>[a, b], 3; f32[a], 0.5"},
    OpDef{.name = "aten.isin.Tensor_Tensor",
          .schema = "(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
                    "invert=False) -> Tensor",
          .infer = isin,
          .onnx = custom(onnx::isin),
          .executorch = decompose(parts::isin),
          .samples = "i64<5>[a, b], i64<5>[c]; f32[a], f32[2, b], invert=True; i64<5>[], "
                     "i64<5>[c]; i64<5>[a], i64<5>[]; f32[a], i64<5>[b]; i64<5>[a, b], i64<5>[0]"},
    OpDef{.name = "aten.kthvalue",
          .schema = "(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, "
                    "Tensor indices)",
          .infer = kthvalue,
          .onnx = custom(onnx::kthvalue),
          .executorch = decompose(parts::kthvalue),
          .samples =
              "f32[a, b], 1; f32[a, 5, b], 3, 1, True; f32[], 1; f32[a, b], b; i64<99>[1, 5], 2"},
    OpDef{.name = "aten.msort",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::msort),
          .executorch = decompose(parts::msort),
          .samples = "f32[a, b]; i64<9>[a]"},
    OpDef{.name = "aten.searchsorted.Scalar",
          .schema = "(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
                    "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
          .infer = positions,
          .onnx = custom(onnx::searchsorted),
          .executorch = decompose(parts::searchsorted),
          .samples = "f32[b], 0.5; f32[a], 2, out_int32=True"},
    OpDef{
        .name = "aten.searchsorted.Tensor",
        .schema = "(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
                  "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
        .infer = positions,
        .onnx = custom(onnx::searchsorted),
        .executorch = decompose(parts::searchsorted),
        .samples =
            "f32[5], f32[a, b]; f32[a, 5], f32[a, b], out_int32=True; f32[b], f32[]; i64<9>[a, 5], "
            "i64<9>[a, b], right=True; f32[b], f32[a], side=\"right\"; f32[2, a, b], f32[2, a, 3]"},
    OpDef{.name = "aten.sort",
          .schema =
              "(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
          .infer = sort,
          .onnx = custom(onnx::sort),
          .executorch = decompose(parts::sort),
          .samples = "f32[a, b]; i64<9>[a, b, 3], 1, True; f32[]; bool[a, b]; i64<3>[a, b], 0; "
                     "u8<4>[a, b], 1, True; f16[a, b], 0; bf16[a, b]"},
    OpDef{
        .name = "aten.sort.stable",
        .schema = "(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "
                  "values, Tensor indices)",
        .infer = sort,
        .onnx = custom(onnx::sort),
        .executorch = decompose(parts::sort),
        .samples = "f32[a, b], stable=True; i64<9>[a, b, 3], stable=False, dim=1, descending=True"},
    OpDef{.name = "aten.topk",
          .schema = "(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> "
                    "(Tensor values, Tensor indices)",
          .infer = topk,
          .onnx = custom(onnx::topk),
          .executorch = direct("aten::topk.values"),
          .samples = "f32[a, b], 1; f32[a, 5], 3, -1; f32[a + 2, 3], a, 0, False; f32[], 1; "
                     "i64<99>[1, b], 2; f16[a, 5], 2; f32[a, b], b"},
};
static_assert(first_bad_row(kSearchOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> search_ops() { return kSearchOps; }

}  // namespace modelport::ops