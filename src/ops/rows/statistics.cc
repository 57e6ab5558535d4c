// Reductions that measure a sample: spread, norms, quantiles, counts.
#include "ops/onnx/statistics.h"

#include <array>

#include "ops/decompositions/reduce.h"
#include "ops/emit/emitter.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results spread_all(Call& call) { return one(to_real(call.dtype_of("self")), {}); }
Results spread_dims(Call& call) { return one(to_real(call.dtype_of("self")), reduce_self(call)); }

Results with_mean(Call& call, Shape shape) {
  const Dtype dtype = call.dtype_of("self");
  return {ir::TensorType{to_real(dtype), shape}, ir::TensorType{dtype, shape}};
}
Results spread_mean_all(Call& call) { return with_mean(call, {}); }
Results spread_mean_dims(Call& call) { return with_mean(call, reduce_self(call)); }

Results logsumexp(Call& call) { return one(to_floating(call.dtype_of("self")), reduce_self(call)); }

Results norm_all(Call& call) {
  const bool asked = schema_of(call.op()).find("dtype") != nullptr && call.has("dtype");
  return one(to_real(asked ? *call.dtype("dtype") : call.dtype_of("self")), {});
}
Results norm_dims(Call& call) {
  const bool asked = schema_of(call.op()).find("dtype") != nullptr && call.has("dtype");
  return one(to_real(asked ? *call.dtype("dtype") : call.dtype_of("self")), reduce_self(call));
}

Results count_all(Call& call) {
  if (!call.has("dim")) return one(Dtype::i64, {});
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  return one(Dtype::i64, reduce(call.shape("self"), {axis}, false));
}
Results count_dims(Call& call) {
  const auto axes = axes_of(call, "dim", call.rank("self"));
  return one(Dtype::i64, reduce(call.shape("self"), axes, false));
}

Results dist(Call& call) {
  broadcast_args(call, {"self", "other"});
  return one(to_real(promote(call, {"self", "other"})), {});
}

// The quantiles asked for become a new first axis.
Results quantile(Call& call) {
  const Shape reduced = reduce_self(call);
  Shape shape = call.is_tensor("q") ? call.shape("q") : Shape{};
  shape.insert(shape.end(), reduced.begin(), reduced.end());
  return one(call.dtype_of("self"), std::move(shape));
}

Results histc(Call& call) { return one(call.dtype_of("self"), {call.integer("bins")}); }

// As long as the greatest value demands, and at least minlength.
Results bincount(Call& call) {
  const std::int64_t least =
      call.dims()
              .decide(shape::Bool::compare(shape::Compare::ge, call.integer("minlength"), 0))
              .value_or(false)
          ? call.integer("minlength").constant().value_or(0)
          : 0;
  Dtype dtype = Dtype::i64;
  if (call.has("weights")) {
    dtype = call.dtype_of("weights") == Dtype::f32 ? Dtype::f32 : Dtype::f64;
  }
  return one(dtype, {call.unknown_size(0, 0, {least, shape::Range::kUnbounded})});
}

constexpr std::array kStatisticsOps{
    OpDef{.name = "aten.bincount",
          .schema = "(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
          .infer = bincount,
          .onnx = custom(onnx::bincount),
          .executorch = refuse("how many numbers it counts depends on the data; torch.histc(x, "
                               "bins, 0, bins - 1) works"),
          .samples = "i64<5>[a]; i64<5>[a], minlength=9; i32<5>[a], f32[a]; i64<4>[a], f64[a], 6; "
                     "i64[a], i64[a]"},
    OpDef{.name = "aten.count_nonzero",
          .schema = "(Tensor self, int? dim=None) -> Tensor",
          .infer = count_all,
          .onnx = custom(onnx::count_nonzero),
          .executorch = decompose(parts::count_nonzero),
          .samples = "f32[a, b]; bool[a]; i64[]; i64[a, b], -1"},
    OpDef{.name = "aten.count_nonzero.dim_IntList",
          .schema = "(Tensor self, int[] dim) -> Tensor",
          .infer = count_dims,
          .onnx = custom(onnx::count_nonzero),
          .executorch = decompose(parts::count_nonzero),
          .samples = "f32[a, b, c], [1]; bool[a, b, c], [-1, 0]; i64[a], [0]"},
    OpDef{.name = "aten.dist",
          .schema = "(Tensor self, Tensor other, Scalar p=2) -> Tensor",
          .infer = dist,
          .onnx = custom(onnx::dist),
          .executorch = decompose(parts::dist),
          .samples = "f32[a, b], f32[b]; f64[a], f64[a], 1"},
    OpDef{.name = "aten.histc",
          .schema = "(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
          .infer = histc,
          .onnx = custom(onnx::histc),
          .executorch = decompose(parts::histc),
          .samples = "f32[a, b]; f32[a], 4, 0, 4; f64[a], bins=a; f32[a, b], bins=3, min=0, max=1; "
                     "f32[a], 5, -1, 1; f32[a, b], 4, 2, 2"},
    OpDef{.name = "aten.linalg_vector_norm",
          .schema = "(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
                    "ScalarType? dtype=None) -> Tensor",
          .infer = norm_dims,
          .onnx = custom(onnx::norm),
          .executorch = decompose(parts::norm),
          .samples = "f32[a, b, c]; f32[a, b, c], 1, [-1, 0], True; c64[a, b], 2, [0]; f16[a, b], "
                     "2, -1, True, dtype=f32; f32[a, b], inf, None, True; f32[a, b], 0, [1]; "
                     "f32[a, b], 3, [0]; f32[a, b], -inf, [1], True; f32[]; bf16[a, b], 2, [1]"},
    OpDef{.name = "aten.logsumexp",
          .schema = "(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
          .infer = logsumexp,
          .onnx = custom(onnx::logsumexp),
          .executorch = decompose(parts::logsumexp),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], True; i64[a, b], [0]; f16[a, b], "
                     "-1; f32[], [0]"},
    OpDef{.name = "aten.norm.Scalar",
          .schema = "(Tensor self, Scalar p=2) -> Tensor",
          .infer = norm_all,
          .onnx = custom(onnx::norm),
          .executorch = decompose(parts::norm),
          .samples = "f32[a, b]; f64[a], 1; c64[a, b]; f16[], 3"},
    OpDef{.name = "aten.norm.ScalarOpt_dim",
          .schema = "(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
          .infer = norm_dims,
          .onnx = custom(onnx::norm),
          .executorch = decompose(parts::norm),
          .samples = "f32[a, b, c], 2, [1]; f32[a, b, c], None, [-1, 0], True; c64[a, b], 1, [0]; "
                     "f32[a, b], 2, -1, True"},
    OpDef{
        .name = "aten.norm.ScalarOpt_dim_dtype",
        .schema =
            "(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
        .infer = norm_dims,
        .onnx = custom(onnx::norm),
        .executorch = decompose(parts::norm),
        .samples =
            "f32[a, b, c], 2, [1], False, dtype=f64; f16[a, b, c], None, [-1, 0], True, dtype=f32"},
    OpDef{.name = "aten.norm.ScalarOpt_dtype",
          .schema = "(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
          .infer = norm_all,
          .onnx = custom(onnx::norm),
          .executorch = decompose(parts::norm),
          .samples = "f32[a, b], 2, dtype=f64; f16[a], None, dtype=f32"},
    OpDef{.name = "aten.quantile",
          .schema = "(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                    "interpolation=\"linear\") -> Tensor",
          .infer = quantile,
          .onnx = custom(onnx::quantile),
          .executorch = decompose(parts::quantile),
          .samples = "f32[a, b], f32[3], 1; f32[a, b], f32[], -1, True; f64[a, b], f64[c]; f32[a, "
                     "b, c], f32[2], 0, True; f32[a, b], f32[3], None, True"},
    OpDef{.name = "aten.quantile.scalar",
          .schema = "(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                    "interpolation=\"linear\") -> Tensor",
          .infer = quantile,
          .onnx = custom(onnx::quantile),
          .executorch = decompose(parts::quantile),
          .samples = "f32[a, b], 0.5, 1; f32[a, b], 0.25, -1, True; f64[a, b], 0.5; f32[a, b], "
                     "0.5, None, True; f32[a, b], 0.3, 0, interpolation='lower'; f32[a, b], 0.3, "
                     "0, interpolation='higher'; f32[a, b], 0.3, 1, interpolation='nearest'; "
                     "f32[a, b], 0.3, 1, interpolation='midpoint'; f32[], 0.5"},
    OpDef{.name = "aten.std",
          .schema = "(Tensor self, bool unbiased=True) -> Tensor",
          .infer = spread_all,
          .onnx = custom(onnx::std_cell),
          .executorch = decompose(parts::std),
          .samples = "f32[a, b, c]; f64[a, b], False; c64[a, b]"},
    OpDef{.name = "aten.std.correction",
          .schema = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                    "keepdim=False) -> Tensor",
          .infer = spread_dims,
          .onnx = custom(onnx::std_cell),
          .executorch = decompose(parts::std),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], correction=0, keepdim=True; f64[a, "
                     "b]; c64[a, b], [0], correction=1; f32[a, 6], [1], correction=2; f32[], "
                     "correction=0; bf16[a, b], [1]"},
    OpDef{.name = "aten.std.dim",
          .schema = "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
          .infer = spread_dims,
          .onnx = custom(onnx::std_cell),
          .executorch = decompose(parts::std),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], False, True; f64[a, b], None; "
                     "c64[a, b], [0]"},
    OpDef{.name = "aten.std_mean",
          .schema = "(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
          .infer = spread_mean_all,
          .onnx = custom(onnx::std_mean),
          .executorch = decompose(parts::std_mean),
          .samples = "f32[a, b, c]; f64[a, b], False; c64[a, b]"},
    OpDef{.name = "aten.std_mean.correction",
          .schema = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                    "keepdim=False) -> (Tensor, Tensor)",
          .infer = spread_mean_dims,
          .onnx = custom(onnx::std_mean),
          .executorch = decompose(parts::std_mean),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], correction=0, keepdim=True; f64[a, "
                     "b]; c64[a, b], [0], correction=1"},
    OpDef{.name = "aten.std_mean.dim",
          .schema = "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
                    "(Tensor, Tensor)",
          .infer = spread_mean_dims,
          .onnx = custom(onnx::std_mean),
          .executorch = decompose(parts::std_mean),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], False, True; f64[a, b], None; "
                     "c64[a, b], [0]"},
    OpDef{.name = "aten.var",
          .schema = "(Tensor self, bool unbiased=True) -> Tensor",
          .infer = spread_all,
          .onnx = custom(onnx::var),
          .executorch = decompose([](emit::Emitter& e) {
            return e.call("aten.var.dim", {e.arg("self"), std::nullopt, e.arg("unbiased")});
          }),
          .samples = "f32[a, b, c]; f64[a, b], False; c64[a, b]"},
    OpDef{.name = "aten.var.correction",
          .schema = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                    "keepdim=False) -> Tensor",
          .infer = spread_dims,
          .onnx = custom(onnx::var),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], correction=0, keepdim=True; f64[a, "
                     "b]; c64[a, b], [0], correction=1"},
    OpDef{.name = "aten.var.dim",
          .schema = "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
          .infer = spread_dims,
          .onnx = custom(onnx::var),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], False, True; f64[a, b], None; "
                     "c64[a, b], [0]"},
    OpDef{.name = "aten.var_mean",
          .schema = "(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
          .infer = spread_mean_all,
          .onnx = custom(onnx::var_mean),
          .executorch = decompose(parts::var_mean),
          .samples = "f32[a, b, c]; f64[a, b], False; c64[a, b]"},
    OpDef{.name = "aten.var_mean.correction",
          .schema = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
                    "keepdim=False) -> (Tensor, Tensor)",
          .infer = spread_mean_dims,
          .onnx = custom(onnx::var_mean),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], correction=0, keepdim=True; f64[a, "
                     "b]; c64[a, b], [0], correction=1"},
    OpDef{.name = "aten.var_mean.dim",
          .schema = "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
                    "(Tensor, Tensor)",
          .infer = spread_mean_dims,
          .onnx = custom(onnx::var_mean),
          .executorch = decompose(parts::var_mean),
          .samples = "f32[a, b, c], [1]; f32[a, b, c], [-1, 0], False, True; f64[a, b], None; "
                     "c64[a, b], [0]"},
};
static_assert(first_bad_row(kStatisticsOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> statistics_ops() { return kStatisticsOps; }

}  // namespace modelport::ops
