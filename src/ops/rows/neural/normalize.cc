// Normalizations and softmax: results like their input, with or without the statistics.
#include "ops/onnx/normalize.h"

#include <array>

#include "ops/decompositions/neural.h"
#include "ops/executorch/adjust.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops {
namespace {

Results softmax(Call& call) {
  const Dtype own = call.dtype_of("self");
  axis_of(call, "dim", call.rank("self"));
  return one(call.dtype("dtype").value_or(own), call.shape("self"));
}

Results softmax_half(Call& call) {
  const bool widened = call.flag("half_to_float");
  return one(widened ? Dtype::f32 : call.dtype_of("self"), call.shape("self"));
}

/// The type statistics are kept in: half-precision input beside wider weights is normalized in f32.
Dtype statistics_dtype(Call& call) {
  const Dtype own = call.dtype_of("input");
  return call.has("weight") ? promote(own, call.dtype_of("weight")) : own;
}

void fit_last_axes(Call& call) {
  const Shape& shape = call.shape("input");
  const std::vector<Int> sizes = call.ints("normalized_shape");
  call.require(sizes.size() <= shape.size(), "more axes to normalize than there are");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    call.require(call.equal(shape[shape.size() - sizes.size() + i], sizes[i]),
                 "the last axes are not those to normalize");
  }
}

Results layer_norm(Call& call) {
  fit_last_axes(call);
  return like_input(call);
}

Shape statistics_shape(Call& call) {
  fit_last_axes(call);
  Shape result = call.shape("input");
  const std::size_t kept = result.size() - call.ints("normalized_shape").size();
  for (std::size_t i = kept; i < result.size(); ++i) result[i] = 1;
  return result;
}

Results native_layer_norm(Call& call) {
  const ir::TensorType statistics{statistics_dtype(call), statistics_shape(call)};
  return {call.tensor("input"), statistics, statistics};
}

Results fused_rms_norm(Call& call) {
  const Dtype own = call.dtype_of("input");
  const Dtype summed = byte_size(own) < byte_size(Dtype::f32) ? Dtype::f32 : own;
  return {call.tensor("input"), ir::TensorType{summed, statistics_shape(call)}};
}

Results native_group_norm(Call& call) {
  const ir::TensorType statistics{statistics_dtype(call),
                                  {call.integer("N"), call.integer("group")}};
  return {call.tensor("input"), statistics, statistics};
}

Results native_batch_norm(Call& call) {
  const bool can_train = schema_of(call.op()).find("training") != nullptr;
  const bool training = can_train && call.flag("training");
  const Int channels = training ? size_at(call, call.shape("input"), 1) : Int(0);
  const ir::TensorType statistics{statistics_dtype(call), {channels}};
  return {call.tensor("input"), statistics, statistics};
}

Results like_v(Call& call) { return {call.tensor("v")}; }

constexpr std::array kNormalizeOps{
    OpDef{.name = "aten._fused_rms_norm",
          .schema = "(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
                    "(Tensor, Tensor)",
          .infer = fused_rms_norm,
          .onnx = custom(onnx::rms_norm),
          .executorch = decompose(parts::fused_rms_norm),
          .samples = "bf16[a, b, 4], [4], bf16[4], 0.001; bf16[a, b, 4], [4], f32[4], 0.001; "
                     "f32[a, b, 4], [4], None, None; f32[a, 3, 4], [3, 4], f32[3, 4], 0.001"},
    OpDef{.name = "aten._log_softmax",
          .schema = "(Tensor self, int dim, bool half_to_float) -> Tensor",
          .infer = softmax_half,
          .onnx = custom(onnx::log_softmax),
          .samples = "f32[a, b], -1, False; bf16[a, b, 3], 1, False"},
    OpDef{.name = "aten._native_batch_norm_legit.no_stats",
          .schema = "(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
                    "float eps) -> (Tensor, Tensor, Tensor)",
          .infer = native_batch_norm,
          .onnx = custom(onnx::batch_norm),
          .samples = "f32[a, 4, b], f32[4], f32[4], True, 0.1, 0.00001; f32[a, 4, 3, b], None, "
                     "None, True, 0.1, 0.00001"},
    OpDef{.name = "aten._native_batch_norm_legit_no_training",
          .schema = "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
                    "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
          .infer = native_batch_norm,
          .onnx = custom(onnx::batch_norm),
          .samples = "f32[a, 4, b], f32[4], f32[4], f32[4], f32[4], 0.1, 0.00001; f32[a, 4], None, "
                     "None, f32[4], f32[4], 0.1, 0.00001"},
    OpDef{.name = "aten._safe_softmax",
          .schema = "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          .infer = softmax,
          .onnx = custom(onnx::safe_softmax),
          .executorch = decompose(parts::safe_softmax),
          .samples = "f32[a, b], -1; f32[a, b, 3], 1"},
    OpDef{.name = "aten._softmax",
          .schema = "(Tensor self, int dim, bool half_to_float) -> Tensor",
          .infer = softmax_half,
          .onnx = custom(onnx::softmax),
          .xnnpack = custom(xnnpack::softmax),
          .samples = "f32[a, b], -1, False; bf16[a, b, 3], 1, False"},
    OpDef{.name = "aten._weight_norm",
          .schema = "(Tensor v, Tensor g, int dim=0) -> Tensor",
          .infer = like_v,
          .onnx = custom(onnx::weight_norm),
          .executorch = decompose(parts::weight_norm),
          .samples = "f32[a, b], f32[a, 1]; f32[3, b, 2], f32[1, 1, 2], 2"},
    OpDef{
        .name = "aten.batch_norm",
        .schema =
            "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
            "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        .infer = like_input,
        .onnx = custom(onnx::batch_norm),
        .executorch = decompose(parts::batch_norm),
        .xnnpack = custom(xnnpack::batch_norm),
        .samples = "f32[a, 4, b], f32[4], f32[4], f32[4], f32[4], False, 0.1, 0.00001, True; "
                   "f32[a, 4], None, None, f32[4], f32[4], False, 0.1, 0.00001, True; f32[a + 1, "
                   "4, b], f32[4], None, None, None, True, 0.1, 0.00001, True; f32[a, 4, b, c], "
                   "f32[4], f32[4], f32[4], f32[4], False, 0.1, 0.001, True"},
    OpDef{.name = "aten.group_norm",
          .schema = "(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                    "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
          .infer = like_input,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::group_norm),
          .executorch = decompose(parts::group_norm),
          .samples = "f32[a, 4, b], 2; f32[a, 6, b, 3], 3, f32[6], f32[6]; f32[a, 4, b, c], 4, "
                     "f32[4], f32[4]; f32[a, 4], 2; f64[a, 4, b], 2, f64[4], f64[4]; bf16[a, 4, "
                     "b], 1, bf16[4], bf16[4], 0.001"},
    OpDef{.name = "aten.instance_norm",
          .schema = "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                    "running_var, bool use_input_stats, float momentum, float eps, bool "
                    "cudnn_enabled) -> Tensor",
          .infer = like_input,
          .onnx = custom(onnx::instance_norm),
          .executorch = decompose(parts::instance_norm),
          .samples = "f32[a, 4, b + 2], f32[4], f32[4], None, None, True, 0.1, 0.00001, True; "
                     "f32[a, 4, 3, b], None, None, None, None, True, 0.1, 0.00001, False; f32[a, "
                     "4, b], f32[4], f32[4], f32[4], f32[4], False, 0.1, 0.001, True; bf16[a, 4, b "
                     "+ 2], bf16[4], bf16[4], None, None, True, 0.1, 0.00001, True"},
    OpDef{
        .name = "aten.layer_norm",
        .schema = "(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? "
                  "bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
        .infer = layer_norm,
        .layout = Layout::dense,
        .onnx = custom(onnx::layer_norm),
        .executorch = decompose(parts::layer_norm),
        .xnnpack = custom(xnnpack::layer_norm),
        .samples = "f32[a, b, 4], [4]; f32[a, 3, 4], [3, 4], f32[3, 4], f32[3, 4]; bf16[a, b, 4], "
                   "[4], f32[4], f32[4]; f32[a, b], [b], f32[b]; f32[a, b, c], [b, c]; f16[a, b, "
                   "4], [4], f16[4], f16[4], 0.001; f64[a, 4], [4], None, f64[4]"},
    OpDef{.name = "aten.log_softmax.int",
          .schema = "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          .infer = softmax,
          .onnx = custom(onnx::log_softmax),
          .executorch = decompose(parts::log_softmax),
          .samples = "f32[a, b], -1; bf16[a, b, 3], 1, f32"},
    OpDef{.name = "aten.native_batch_norm",
          .schema =
              "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
              "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
          .infer = native_batch_norm,
          .onnx = custom(onnx::batch_norm),
          .executorch = decompose(parts::native_batch_norm),
          .samples = "f32[a, 4, b], f32[4], f32[4], f32[4], f32[4], False, 0.1, 0.00001; f32[a, "
                     "4], None, None, f32[4], f32[4], True, 0.1, 0.00001"},
    OpDef{.name = "aten.native_group_norm",
          .schema = "(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
                    "int group, float eps) -> (Tensor, Tensor, Tensor)",
          .infer = native_group_norm,
          .onnx = custom(onnx::group_norm),
          .executorch = custom(executorch::native_group_norm),
          .samples =
              "bf16[a, 4, b], f32[4], f32[4], a, 4, b, 2, 0.00001; f32[a, 4, b], None, None, "
              "a, 4, b, 2, 0.00001; f32[a, 6, b, 3], f32[6], f32[6], a, 6, 3*b, 3, 0.00001"},
    OpDef{.name = "aten.native_layer_norm",
          .schema = "(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float "
                    "eps) -> (Tensor, Tensor, Tensor)",
          .infer = native_layer_norm,
          .onnx = custom(onnx::layer_norm),
          .executorch = custom(executorch::native_layer_norm),
          .samples = "bf16[a, b, 4], [4], None, None, 0.00001; bf16[a, b, 4], [4], bf16[4], "
                     "bf16[4], 0.00001; f32[a, b, 4], [4], None, None, 0.00001; f32[a, 3, 4], [3, "
                     "4], f32[3, 4], f32[3, 4], 0.00001; bf16[a, 4], [4], f32[4], f32[4], 0.00001"},
    OpDef{.name = "aten.renorm",
          .schema = "(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::renorm),
          .executorch = decompose(parts::renorm),
          .samples = "f32[a, b], 2, 0, 1.0; f32[a, b, 3], 1, -1, 5.0"},
    OpDef{.name = "aten.rms_norm",
          .schema = "(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? "
                    "eps=None) -> Tensor",
          .infer = layer_norm,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::rms_norm),
          .executorch = decompose(parts::rms_norm),
          .xnnpack = custom(xnnpack::rms_norm),
          .samples = "f32[a, b, 4], [4]; f32[a, 3, 4], [3, 4], f32[3, 4]; bf16[a, b, 4], [4], "
                     "bf16[4], 0.001; bf16[a, b, 4], [4], f32[4]; f16[a, 4], [4]; f32[a, b], [b], "
                     "f32[b], 0.00001; f64[a, 4], [4], f64[4]"},
    OpDef{.name = "aten.softmax.int",
          .schema = "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          .infer = softmax,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::softmax),
          .executorch = decompose(parts::softmax),
          .xnnpack = custom(xnnpack::softmax),
          .samples = "f32[a, b], -1; bf16[a, b, 3], 1, f32; i64[a], 0, f32; f32[], 0; f16[a, b], "
                     "0; f64[a, b, c], 1"},
    OpDef{.name = "aten.special_log_softmax",
          .schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
          .infer = softmax,
          .onnx = custom(onnx::log_softmax),
          .executorch = decompose(parts::log_softmax),
          .samples = "f32[a, b], -1; bf16[a, b, 3], 1, dtype=f32"},
    OpDef{.name = "aten.special_softmax",
          .schema = "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
          .infer = softmax,
          .onnx = custom(onnx::softmax),
          .executorch = decompose(parts::softmax),
          .xnnpack = custom(xnnpack::softmax),
          .samples = "f32[a, b], -1; bf16[a, b, 3], 1, f32"},
};
static_assert(first_bad_row(kNormalizeOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> normalize_ops() { return kNormalizeOps; }

}  // namespace modelport::ops