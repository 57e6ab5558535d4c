// Copies of a tensor with elements written by index or by mask: the result has the type of the
// tensor.
#include <array>

#include "ops/axes.h"
#include "ops/families.h"
#include "ops/family_parts.h"

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
        .samples =
            "f32[a, b, 3], [i64<1>[c]], f32[b, 3]; f32[a, 2], [None, i64<2>[c]], f32[a, c], True"},
    OpDef{.name = "aten.index_add",
          .schema =
              "(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
          .infer = like_self,
          .samples =
              "f32[3, b], 0, i64<3>[c], f32[c, b]; f32[a, 3], -1, i64<3>[2], f32[a, 2], alpha=2"},
    OpDef{.name = "aten.index_copy",
          .schema = "(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[c], f32[c, b]; f32[a, 3], -1, i64<3>[2], f32[a, 2]"},
    OpDef{.name = "aten.index_fill.int_Scalar",
          .schema = "(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[c], 1.0; f32[a, 3], -1, i64<3>[2], 2"},
    OpDef{.name = "aten.index_fill.int_Tensor",
          .schema = "(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[c], f32[]; f32[a, 3], -1, i64<3>[2], f32[]"},
    OpDef{.name = "aten.index_put",
          .schema =
              "(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
          .infer = like_self,
          .samples = "f32[a, b, 3], [i64<1>[c]], f32[b, 3]; f32[a, b, 3], [None, i64<1>[c]], "
                     "f32[a, c, 3], True; f32[a, b], [bool[a, b]], f32[]"},
    OpDef{.name = "aten.index_reduce",
          .schema = "(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
                    "include_self=True) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[c], f32[c, b], \"prod\"; f32[a, 3], -1, i64<3>[2], "
                     "f32[a, 2], \"amin\""},
    OpDef{.name = "aten.masked_fill.Scalar",
          .schema = "(Tensor self, Tensor mask, Scalar value) -> Tensor",
          .infer = masked,
          .samples = "f32[a, b], bool[a, b], 1.0; f32[a, b], bool[b], -2; f32[b], bool[a, b], 0; "
                     "i64[a], bool[a], 3"},
    OpDef{.name = "aten.masked_fill.Tensor",
          .schema = "(Tensor self, Tensor mask, Tensor value) -> Tensor",
          .infer = masked,
          .samples = "f32[a, b], bool[a, b], f32[]; f32[b], bool[a, 1], f32[]"},
    OpDef{.name = "aten.masked_scatter",
          .schema = "(Tensor self, Tensor mask, Tensor source) -> Tensor",
          .infer = masked,
          .samples = "f32[a, b], bool[a, b], f32[a, b]; f32[a, b], bool[a, 1], f32[a*b]"},
    OpDef{.name = "aten.put",
          .schema = "(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], i64<3>[c], f32[c]; f32[a, 3], i64<3>[2, 2], f32[4], True"},
    OpDef{.name = "aten.scatter.reduce",
          .schema = "(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[2, b], f32[2, b], reduce=\"add\"; f32[a, 3], -1, "
                     "i64<3>[a, 1], f32[a, 2], reduce=\"multiply\""},
    OpDef{
        .name = "aten.scatter.src",
        .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        .infer = like_self,
        .samples = "f32[3, b], 0, i64<3>[2, b], f32[2, b]; f32[a, 3], -1, i64<3>[a, 1], f32[a, 2]"},
    OpDef{.name = "aten.scatter.value",
          .schema = "(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[2, b], 1.5; f32[a, 3], -1, i64<3>[a, 1], 2"},
    OpDef{.name = "aten.scatter.value_reduce",
          .schema = "(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[2, b], 2.0, reduce=\"add\"; f32[a, 3], -1, i64<3>[a, "
                     "1], 3.0, reduce=\"multiply\""},
    OpDef{
        .name = "aten.scatter_add",
        .schema = "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
        .infer = like_self,
        .samples = "f32[3, b], 0, i64<3>[2, b], f32[2, b]; f32[a, 3], -1, i64<3>[a, 1], f32[a, 2]"},
    OpDef{.name = "aten.scatter_reduce.two",
          .schema = "(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
                    "include_self=True) -> Tensor",
          .infer = like_self,
          .samples = "f32[3, b], 0, i64<3>[2, b], f32[2, b], \"sum\"; f32[a, 3], -1, i64<3>[a, 1], "
                     "f32[a, 2], \"amax\", include_self=False"},
};
static_assert(first_bad_row(kPutOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> put_ops() { return kPutOps; }

}  // namespace modelport::ops