// Copies of a tensor with elements written by index or by mask: the result has the type of the
// tensor.
#include <array>

#include "ops/decompositions/indexing.h"
#include "ops/executorch/index.h"
#include "ops/onnx/index.h"
#include "ops/onnx/scatter.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

// Out of place, a mask broadcasts with what it masks.
Results masked(Call& call) {
  return one(call.dtype_of("self"), broadcast_args(call, {"self", "mask"}));
}

constexpr std::array kPutOps{
    OpDef{
        .name = "aten._unsafe_index_put",
        .schema =
            "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
        .infer = like_self,
        .onnx = custom(onnx::index_put),
        .executorch = decompose(parts::unsafe_index_put),
        .samples =
            "f32[a, b, 3], [i64<1>[c]], f32[b, 3]; f32[a, 2], [None, i64<2>[c]], f32[a, c], True"},
    OpDef{.name = "aten.index_add",
          .schema =
              "(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::index_add),
          .executorch = decompose(parts::index_add),
          .samples =
              "f32[3, b], 0, i64<3>[c], f32[c, b]; f32[a, 3], -1, i64<3>[2], f32[a, 2], alpha=2; "
              "i64[6, b], 0, i64<6>[c], i64[c, b]; f16[a, 3], 1, i64<3>[b], f16[a, b]; f32[a, 3, "
              "b], 1, i32<3>[c], f32[a, c, b], alpha=0.5; f32[3], 0, i64<3>[a], f32[a]"},
    OpDef{.name = "aten.index_copy",
          .schema = "(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::index_copy),
          .executorch = decompose(parts::index_copy),
          .samples = "f32[3, b], 0, i64<1>[1], f32[1, b]; f32[a, 3], -1, i64<3>[1], f32[a, 1]; "
                     "bool[a, 6], 1, i64<1>[1], bool[a, 1]"},
    OpDef{.name = "aten.index_fill.int_Scalar",
          .schema = "(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::index_fill),
          .executorch = decompose(parts::index_fill),
          .samples = "f32[3, b], 0, i64<3>[c], 1.0; f32[a, 3], -1, i64<3>[2], 2; bool[a, 3], 1, "
                     "i64<3>[2], 1; i64[a, b, 3], 2, i64<3>[], 7"},
    OpDef{.name = "aten.index_fill.int_Tensor",
          .schema = "(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::index_fill),
          .executorch = decompose(parts::index_fill),
          .samples = "f32[3, b], 0, i64<3>[c], f32[]; f32[a, 3], -1, i64<3>[2], f32[]"},
    OpDef{.name = "aten.index_put",
          .schema =
              "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::index_put),
          .executorch = custom(executorch::index_put),
          .samples =
              "f32[a, b, 3], [i64<1>[c]], f32[b, 3]; f32[a, b, 3], [None, i64<1>[c]], f32[a, c, "
              "3], True; f32[a, b], [bool[a, b]], f32[]; f32[a, b, 3], [bool[a, b]], f32[3]; "
              "f32[a, b], [bool[a]], f32[1, b]; f32[a, b, 3], [None, bool[b]], f32[a, 1, 3]; "
              "f32[a, b, 3], [bool[a, b]], f32[1, 3], True; f32[6, 7], [i64[c], i64[c]], f32[c], "
              "True; f32[6, b, 7], [i64[4], None, i64[4]], f32[4, b], True; f32[a, 6, 7], [None, "
              "i64[c, 1], i64[3]], f32[a, c, 3], True; bool[a, b], [bool[a, b]], bool[]; i64[6, "
              "b], [i64[c]], i64[], True; f32[a, 6], [None, i64<6>[c]], f32[]; bool[a, 6], "
              "[i64<1>[a, 1], i64[2]], bool[]; f32[a, 6, b], [bool[a], i64[]], f32[b]; c64[a, b], "
              "[bool[a, b]], c64[]; f16[a, 6], [None, i64[c]], f16[c], True"},
    OpDef{.name = "aten.index_reduce",
          .schema = "(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
                    "include_self=True) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::index_reduce),
          .executorch = decompose(parts::index_reduce),
          .samples =
              "f32[3, b], 0, i64<3>[c], f32[c, b], \"prod\"; f32[a, 3], -1, i64<3>[2], f32[a, "
              "2], \"amin\"; f32[3, b], 0, i64<3>[c], f32[c, b], \"mean\"; f32[3, b], 0, "
              "i64<3>[c], f32[c, b], \"mean\", include_self=False; f32[a, 3], 1, i64<3>[2], "
              "f32[a, 2], \"amax\", include_self=False; f32[a, 3], 1, i64<3>[2], f32[a, 2], "
              "\"prod\", include_self=False; i64[4, b], 0, i64<4>[c], i64[c, b], \"amin\""},
    OpDef{.name = "aten.masked_fill.Scalar",
          .schema = "(Tensor self, Tensor mask, Scalar value) -> Tensor",
          .infer = masked,
          .onnx = custom(onnx::masked_fill),
          .samples =
              "f32[a, b], bool[a, b], 1.0; f32[a, b], bool[b], -2; f32[b], bool[a, b], 0; i64[a], "
              "bool[a], 3; bool[a, b], bool[a, b], True; f16[a, b], bool[1, b], -65504.0; bf16[a], "
              "bool[a], 1.5; c64[a, b], bool[b], 2; i16[a], bool[a], 3; f32[], bool[a], 1"},
    OpDef{.name = "aten.masked_fill.Tensor",
          .schema = "(Tensor self, Tensor mask, Tensor value) -> Tensor",
          .infer = masked,
          .onnx = custom(onnx::masked_fill),
          .executorch = decompose(parts::masked_fill),
          .samples = "f32[a, b], bool[a, b], f32[]; f32[b], bool[a, 1], f32[]; i64[a, b], bool[b], "
                     "i64[]; bool[a], bool[a], bool[]"},
    OpDef{.name = "aten.masked_scatter",
          .schema = "(Tensor self, Tensor mask, Tensor source) -> Tensor",
          .infer = masked,
          .onnx = custom(onnx::masked_scatter),
          .samples = "f32[a, b], bool[a, b], f32[a, b]; f32[a, b], bool[a, 1], f32[a*b]; f32[a, b, "
                     "3], bool[a, b, 1], f32[a*b, 3]; f32[a, b, 3], bool[a, 1, 1], f32[3*a*b]; "
                     "i64[a, b], bool[b], i64[a*b]; f32[b], bool[a, 1], f32[a*b]"},
    OpDef{.name = "aten.put",
          .schema = "(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::put),
          .executorch = decompose(parts::put),
          .samples = "f32[3, b], i64<3>[1], f32[1]; f32[a, 3], i64<3>[2, 2], f32[4], True; i64[6], "
                     "i64[b], i64[b], True"},
    OpDef{.name = "aten.scatter.reduce",
          .schema = "(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::scatter_reduce),
          .executorch = decompose(parts::scatter_reduced_by),
          .samples = "f32[3, b], 0, i64<3>[2, b], f32[2, b], reduce=\"add\"; f32[a, 3], -1, "
                     "i64<3>[a, 1], f32[a, 2], reduce=\"multiply\""},
    OpDef{.name = "aten.scatter.src",
          .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::scatter_src),
          .samples = "f32[3, b], 0, i64<3>[1, b], f32[2, b]; f32[a, 3], -1, i64<3>[a, 1], f32[a, "
                     "2]; f32[], 0, i64<1>[], f32[]; bool[a, 3], 1, i64<3>[a, 1], bool[a, 1]"},
    OpDef{.name = "aten.scatter.value",
          .schema = "(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::scatter_value),
          .samples =
              "f32[3, b], 0, i64<3>[2, b], 1.5; f32[a, 3], -1, i64<3>[a, 1], 2; bool[a, b], "
              "1, i64<1>[a, 1], True; i64[a, 3], 1, i64<3>[2, 2], 5; f32[], 0, i64<1>[], 2.5"},
    OpDef{.name = "aten.scatter.value_reduce",
          .schema = "(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::scatter_value),
          .executorch = decompose(parts::scatter_reduced_by),
          .samples = "f32[3, b], 0, i64<3>[2, b], 2.0, reduce=\"add\"; f32[a, 3], -1, i64<3>[a, "
                     "1], 3.0, reduce=\"multiply\""},
    OpDef{
        .name = "aten.scatter_add",
        .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        .infer = like_self,
        .onnx = custom(onnx::scatter_reduce),
        .samples =
            "f32[3, b], 0, i64<3>[2, b], f32[2, b]; f32[a, 3], -1, i64<3>[a, 1], f32[a, 2]; i64[3, "
            "b], 0, i64<3>[c, b], i64[c, b]; f16[a, 3], 1, i64<3>[a, b], f16[a, b]; f32[a, b, 3], "
            "2, i64<3>[2, b, 4], f32[2, b, 5]; bool[3, b], 0, i64<3>[c, b], bool[c, b]"},
    OpDef{.name = "aten.scatter_reduce.two",
          .schema = "(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
                    "include_self=True) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::scatter_reduce),
          .executorch = decompose(parts::scatter_reduce),
          .samples =
              "f32[3, b], 0, i64<3>[2, b], f32[2, b], \"sum\"; f32[a, 3], -1, i64<3>[a, 1], f32[a, "
              "2], \"amax\", include_self=False; f32[a, 3], 1, i64<3>[2, b], f32[2, b + 1], "
              "\"sum\", include_self=True; f32[a, 3], 1, i64<3>[2, b], f32[2, b + 1], \"sum\", "
              "include_self=False; i64[4, b], 0, i64<4>[c, b], i64[c, b], \"sum\"; f32[a, 3], 1, "
              "i64<3>[2, b], f32[2, b + 1], \"prod\", include_self=True; f32[a, 3], 1, i64<3>[2, "
              "b], f32[2, b + 1], \"prod\", include_self=False; i64[4, b], 0, i64<4>[c, b], i64[c, "
              "b], \"prod\"; f32[a, 3], 1, i64<3>[2, b], f32[2, b + 1], \"mean\", "
              "include_self=True; f32[a, 3], 1, i64<3>[2, b], f32[2, b + 1], \"mean\", "
              "include_self=False; i64[4, b], 0, i64<4>[c, b], i64[c, b], \"mean\"; f32[a, 3], 1, "
              "i64<3>[2, b], f32[2, b + 1], \"amax\", include_self=True; f32[a, 3], 1, i64<3>[2, "
              "b], f32[2, b + 1], \"amax\", include_self=False; i64[4, b], 0, i64<4>[c, b], i64[c, "
              "b], \"amax\"; f32[a, 3], 1, i64<3>[2, b], f32[2, b + 1], \"amin\", "
              "include_self=True; f32[a, 3], 1, i64<3>[2, b], f32[2, b + 1], \"amin\", "
              "include_self=False; i64[4, b], 0, i64<4>[c, b], i64[c, b], \"amin\"; i64[4, b], 0, "
              "i64<4>[c, b], i64[c, b], \"mean\", include_self=False; f16[4, b], 0, i64<4>[c, b], "
              "f16[c, b], \"amax\", include_self=False; f32[], 0, i64<1>[], f32[], \"sum\""},
};
static_assert(first_bad_row(kPutOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> put_ops() { return kPutOps; }

}  // namespace modelport::ops