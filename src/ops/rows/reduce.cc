// Reductions over some axes or all of them: sums, extremes and truth.
#include "ops/onnx/reduce.h"

#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/reduce.h"
#include "ops/executorch/guarded.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops {
namespace {

Shape over_dim(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  return reduce(call.shape("self"), {axis}, call.flag("keepdim"));
}

// Sums of integers and bools are i64, so that they do not overflow.
Dtype sum_dtype(const Call& call) {
  const Dtype self = call.dtype_of("self");
  const bool whole = is_integral(self) || self == Dtype::boolean;
  return call.dtype("dtype").value_or(whole ? Dtype::i64 : self);
}

Results sum_all(Call& call) { return one(sum_dtype(call), {}); }
Results sum_dims(Call& call) { return one(sum_dtype(call), reduce_self(call)); }
Results prod_dim(Call& call) { return one(sum_dtype(call), over_dim(call)); }

Results mean_all(Call& call) {
  return one(call.dtype("dtype").value_or(call.dtype_of("self")), {});
}
Results mean_dims(Call& call) {
  return one(call.dtype("dtype").value_or(call.dtype_of("self")), reduce_self(call));
}

Results extreme(Call& call) { return one(call.dtype_of("self"), reduce_self(call)); }
Results aminmax(Call& call) {
  const ir::TensorType type{call.dtype_of("self"), reduce_self(call)};
  return {type, type};
}
Results scalar_of_self(Call& call) { return one(call.dtype_of("self"), {}); }
Results values_and_indices(Call& call) {
  const Shape shape = over_dim(call);
  return {ir::TensorType{call.dtype_of("self"), shape}, ir::TensorType{Dtype::i64, shape}};
}
Results argument(Call& call) { return one(Dtype::i64, reduce_self(call)); }

// Torch keeps u8 here, from the time before it had bool.
Dtype truth_dtype(const Call& call) {
  return call.dtype_of("self") == Dtype::u8 ? Dtype::u8 : Dtype::boolean;
}
Results truth_all(Call& call) { return one(truth_dtype(call), {}); }
Results truth_dim(Call& call) { return one(truth_dtype(call), over_dim(call)); }
Results truth_dims(Call& call) { return one(truth_dtype(call), reduce_self(call)); }

constexpr std::array kReduceOps{
    OpDef{.name = "aten._is_all_true",
          .schema = "(Tensor self) -> Tensor",
          .infer = truth_all,
          .onnx = custom(onnx::all),
          .executorch = decompose(parts::all),
          .samples = "bool[a, b]; bool[]"},
    OpDef{.name = "aten._is_any_true",
          .schema = "(Tensor self) -> Tensor",
          .infer = truth_all,
          .onnx = custom(onnx::any),
          .executorch = direct("aten::any.all_out"),
          .samples = "bool[a, b]; bool[]"},
    OpDef{.name = "aten.all",
          .schema = "(Tensor self) -> Tensor",
          .infer = truth_all,
          .onnx = custom(onnx::all),
          .executorch = decompose(parts::all),
          .samples = "bool[a, b]; f32[a]; u8[a]; i64[]; bool[]"},
    OpDef{.name = "aten.all.dim",
          .schema = "(Tensor self, int dim, bool keepdim=False) -> Tensor",
          .infer = truth_dim,
          .onnx = custom(onnx::all),
          .executorch = decompose(parts::all),
          .samples = "bool[a, b], 1; f32[a, b, c], -2, True; u8[a], 0; bool[], -1"},
    OpDef{
        .name = "aten.all.dims",
        .schema = "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        .infer = truth_dims,
        .onnx = custom(onnx::all),
        .executorch = decompose(parts::all),
        .samples = "bool[a, b], [1]; f32[a, b, c], [-2, 0], True; u8[a, b], [0]; bool[a, b], None"},
    OpDef{.name = "aten.amax",
          .schema = "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
          .infer = extreme,
          .onnx = custom(onnx::amax),
          .samples = "f32[a, b, c], [1]; i64[a, b, c], [-1, 0], True; f32[a, b]; bool[a, b], [0]; "
                     "f16[], [-1]; i16[a, b], [1]; bf16[a, b]"},
    OpDef{.name = "aten.amin",
          .schema = "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
          .infer = extreme,
          .onnx = custom(onnx::amin),
          .samples = "f32[a, b, c], [1]; i64[a, b, c], [-1, 0], True; f32[a, b]; bool[a, b], [0]; "
                     "f16[], [-1]"},
    OpDef{
        .name = "aten.aminmax",
        .schema = "(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
        .infer = aminmax,
        .onnx = custom(onnx::aminmax),
        .executorch = decompose(parts::aminmax),
        .samples = "f32[a, b, c]; i64[a, b, c], dim=-1, keepdim=True; f32[a, b], keepdim=True; "
                   "bool[a, b], dim=0"},
    OpDef{.name = "aten.any",
          .schema = "(Tensor self) -> Tensor",
          .infer = truth_all,
          .onnx = custom(onnx::any),
          .executorch = direct("aten::any.all_out"),
          .samples = "bool[a, b]; f32[a]; u8[a]; i64[]"},
    OpDef{
        .name = "aten.any.dim",
        .schema = "(Tensor self, int dim, bool keepdim=False) -> Tensor",
        .infer = truth_dim,
        .onnx = custom(onnx::any),
        .samples = "bool[a, b], 1; f32[a, b, c], -2, True; u8[a], 0; bool[], -1; bool[a, b, c], 0"},
    OpDef{
        .name = "aten.any.dims",
        .schema = "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
        .infer = truth_dims,
        .onnx = custom(onnx::any),
        .samples = "bool[a, b], [1]; f32[a, b, c], [-2, 0], True; u8[a, b], [0]; bool[a, b], None"},
    OpDef{.name = "aten.argmax",
          .schema = "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
          .infer = argument,
          .onnx = custom(onnx::argmax),
          .samples = "f32[a, b, c]; i64[a, b, c], 1; f32[a, b], -1, True; f32[a, b], None, True; "
                     "f16[], 0; bf16[a, b], 1; u8[a, b], 0; i16[a]"},
    OpDef{
        .name = "aten.argmin",
        .schema = "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        .infer = argument,
        .onnx = custom(onnx::argmin),
        .samples =
            "f32[a, b, c]; i64[a, b, c], 1; f32[a, b], -1, True; f32[a, b], None, True; f16[], 0"},
    OpDef{.name = "aten.max",
          .schema = "(Tensor self) -> Tensor",
          .infer = scalar_of_self,
          .onnx = custom(onnx::amax),
          .executorch = direct("aten::max.unary_out"),
          .samples = "f32[a, b, c]; i64[a]; bool[a, b]; f16[]"},
    OpDef{.name = "aten.max.dim",
          .schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          .infer = values_and_indices,
          .onnx = custom(onnx::max_dim),
          .executorch = direct("aten::max.dim_max"),
          .samples = "f32[a, b, c], 1; i64[a, b, c], -1, True; bool[a, b], 0; f16[], -1; bf16[a, "
                     "b], 1; u8[a, b], 0"},
    OpDef{.name = "aten.mean",
          .schema = "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
          .infer = mean_all,
          .onnx = custom(onnx::mean),
          .executorch = direct("aten::mean.dtype_out"),
          .samples = "f32[a, b, c]; f16[]; i64[a], dtype=f32; c64[a]"},
    OpDef{.name = "aten.mean.dim",
          .schema =
              "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          .infer = mean_dims,
          .onnx = custom(onnx::mean),
          .xnnpack = custom(xnnpack::mean),
          .pairs = decompose(parts::on_pairs),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], True; f16[a, b], None; i64[a, b], "
                     "[0], dtype=f32; f32[a, b], -1, True; c64[a, b], [1]; bf16[a, b], [-1], True"},
    OpDef{.name = "aten.median",
          .schema = "(Tensor self) -> Tensor",
          .infer = scalar_of_self,
          .onnx = custom(onnx::median),
          .executorch = decompose(parts::median),
          .samples = "f32[a, b, c]; i64[a]; f64[]"},
    OpDef{.name = "aten.median.dim",
          .schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          .infer = values_and_indices,
          .onnx = custom(onnx::median),
          .executorch = decompose(parts::median),
          .samples = "f32[a, b, c], 1; i64[a, b, c], -1, True; f32[], 0"},
    OpDef{.name = "aten.min",
          .schema = "(Tensor self) -> Tensor",
          .infer = scalar_of_self,
          .onnx = custom(onnx::amin),
          .executorch = direct("aten::min.unary_out"),
          .samples = "f32[a, b, c]; i64[a]; bool[a, b]; f16[]"},
    OpDef{.name = "aten.min.dim",
          .schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          .infer = values_and_indices,
          .onnx = custom(onnx::min_dim),
          .executorch = direct("aten::min.dim_min"),
          .samples = "f32[a, b, c], 1; i64[a, b, c], -1, True; bool[a, b], 0; f16[], -1"},
    OpDef{.name = "aten.mode",
          .schema =
              "(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
          .infer = values_and_indices,
          .onnx = custom(onnx::mode),
          .executorch = refuse("the runtime cannot count equal elements"),
          .samples = "f32[a, b, c], 1; i64[a, b, c], -1, True; f32[a]"},
    OpDef{.name = "aten.nanmedian",
          .schema = "(Tensor self) -> Tensor",
          .infer = scalar_of_self,
          .onnx = custom(onnx::nanmedian),
          .executorch = decompose(parts::median),
          .samples = "f32[a, b, c]; i64[a]; f64[]"},
    OpDef{.name = "aten.nanmedian.dim",
          .schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
          .infer = values_and_indices,
          .onnx = custom(onnx::nanmedian),
          .executorch = decompose(parts::median),
          .samples = "f32[a, b, c], 1; i64[a, b, c], -1, True; f32[], 0"},
    OpDef{.name = "aten.nansum",
          .schema = "(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                    "dtype=None) -> Tensor",
          .infer = sum_dims,
          .onnx = custom(onnx::nansum),
          .executorch = decompose(parts::nansum),
          .samples = "f32[a, b, c], [1]; f32[a, b], None, True; i32[a, b], [-1]"},
    OpDef{.name = "aten.prod",
          .schema = "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
          .infer = sum_all,
          .onnx = custom(onnx::prod),
          .samples = "f32[a, b, c]; i32[a, b]; bool[a]; f16[a], dtype=f32"},
    OpDef{
        .name = "aten.prod.dim_int",
        .schema = "(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        .infer = prod_dim,
        .onnx = custom(onnx::prod),
        .executorch = direct("aten::prod.int_out"),
        .samples = "f32[a, b, c], 1; i32[a, b], -1, True; bool[a], 0; f16[a, b], 0, dtype=f32"},
    OpDef{.name = "aten.sum",
          .schema = "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
          .infer = sum_all,
          .onnx = custom(onnx::sum),
          .executorch = decompose(parts::sum_all),
          .samples =
              "f32[a, b, c]; i32[a, b]; bool[a]; f16[]; f16[a], dtype=f32; c64[a, b]; bf16[a, b]"},
    OpDef{
        .name = "aten.sum.dim_IntList",
        .schema =
            "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        .infer = sum_dims,
        .onnx = custom(onnx::sum),
        .executorch = custom(executorch::sum),
        .xnnpack = custom(xnnpack::sum),
        .pairs = decompose(parts::on_pairs),
        .samples =
            "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], True; i32[a, b], [0]; bool[a, b], "
            "[1], True; f16[a, b], None; f32[a], [0], dtype=f64; f32[], [-1]; f32[a, b], "
            "-1, keepdim=True; i64[a, 4], [-1]; i64[a, 4], [1], True; c64[a, b], [0]; "
            "i64[a, b, c], [0, 2]; i64<1000000000000>[a, b, c], [1]; i32<2000000000>[a, b], None"},
};
static_assert(first_bad_row(kReduceOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> reduce_ops() { return kReduceOps; }

}  // namespace modelport::ops
