// Activations of neural networks, and dropout (which keeps the type whether it drops or not).
#include "ops/onnx/activation.h"

#include <array>

#include "ops/rules/axes.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results glu(Call& call) {
  ir::TensorType self = call.tensor("self");
  const auto axis = static_cast<std::size_t>(axis_of(call, "dim", call.rank("self")));
  self.shape[axis] = divided(call, self.shape[axis], 2);
  return {std::move(self)};
}

// The second result is what the backward pass needs.
Results log_sigmoid_forward(Call& call) { return {call.tensor("self"), call.tensor("self")}; }

Results native_dropout(Call& call) {
  return {call.tensor("input"), ir::TensorType{Dtype::boolean, call.shape("input")}};
}

constexpr std::array kActivationOps{
    OpDef{.name = "aten.alpha_dropout",
          .schema = "(Tensor input, float p, bool train) -> Tensor",
          .infer = like_input,
          .onnx = custom(onnx::alpha_dropout),
          .samples = "f32[a, b], 0.5, False; f16[a], 0.0, True; f32[a, b], 0.3, True"},
    OpDef{.name = "aten.celu",
          .schema = "(Tensor self, Scalar alpha=1.) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::celu),
          .samples = "f32[a, b]; f64[], 0.5"},
    OpDef{.name = "aten.dropout",
          .schema = "(Tensor input, float p, bool train) -> Tensor",
          .infer = like_input,
          .onnx = custom(onnx::dropout),
          .samples = "f32[a, b], 0.5, False; f16[a], 0.0, True; f32[a, b], 0.3, True"},
    OpDef{.name = "aten.elu",
          .schema = "(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::elu),
          .samples = "f32[a, b]; f64[], 0.5; f16[a], alpha=2; f32[a], 1.5, 1.1, 0.7"},
    OpDef{.name = "aten.feature_alpha_dropout",
          .schema = "(Tensor input, float p, bool train) -> Tensor",
          .infer = like_input,
          .onnx = custom(onnx::alpha_dropout),
          .samples = "f32[a, b, c], 0.5, False; f32[a, b, 3, 3], 0.1, True"},
    OpDef{.name = "aten.feature_dropout",
          .schema = "(Tensor input, float p, bool train) -> Tensor",
          .infer = like_input,
          .onnx = custom(onnx::feature_dropout),
          .samples = "f32[a, b, c], 0.5, False; f32[a, b, 3, 3], 0.1, True"},
    OpDef{.name = "aten.gelu",
          .schema = "(Tensor self, *, str approximate=\"none\") -> Tensor",
          .infer = like_self,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::gelu),
          .samples =
              "f32[a, b]; f64[], approximate='tanh'; bf16[a, b, c]; f32[a], approximate='tanh'"},
    OpDef{.name = "aten.glu",
          .schema = "(Tensor self, int dim=-1) -> Tensor",
          .infer = glu,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::glu),
          .samples = "f32[a, 2*b]; f32[2*a, b, 6], 0; f16[a, 8, b], -2"},
    OpDef{.name = "aten.hardshrink",
          .schema = "(Tensor self, Scalar lambd=0.5) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::hardshrink),
          .samples = "f32[a, b]; f64[], 0.2"},
    OpDef{.name = "aten.hardsigmoid",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::hardsigmoid),
          .samples = "f32[a, b]; f64[]; bf16[a]"},
    OpDef{.name = "aten.hardswish",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::hardswish),
          .samples = "f32[a, b]; f64[]; bf16[a]"},
    OpDef{.name = "aten.hardtanh",
          .schema = "(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::hardtanh),
          .samples = "f32[a, b]; f64[], -2, 2; f16[a], min_val=0, max_val=6"},
    OpDef{.name = "aten.leaky_relu",
          .schema = "(Tensor self, Scalar negative_slope=0.01) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::leaky_relu),
          .samples = "f32[a, b]; f64[], 0.2"},
    OpDef{.name = "aten.log_sigmoid",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::log_sigmoid),
          .samples = "f32[a, b]; f64[]; bf16[a]"},
    OpDef{.name = "aten.log_sigmoid_forward",
          .schema = "(Tensor self) -> (Tensor output, Tensor buffer)",
          .infer = log_sigmoid_forward,
          .onnx = custom(onnx::log_sigmoid_forward),
          .samples = "f32[a, b]; f64[a]"},
    OpDef{.name = "aten.mish",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::mish),
          .samples = "f32[a, b]; f64[]; bf16[a]"},
    OpDef{.name = "aten.native_dropout",
          .schema = "(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
          .infer = native_dropout,
          .onnx = custom(onnx::native_dropout),
          .samples = "f32[a, b], 0.5, True; f16[a], 0.1, False; f32[], 0.1, None"},
    OpDef{.name = "aten.prelu",
          .schema = "(Tensor self, Tensor weight) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::prelu),
          .samples = "f32[a, b], f32[b]; f32[a, 3, b, c], f32[3]; f32[a], f32[1]"},
    OpDef{.name = "aten.relu",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::relu),
          .samples = "f32[a, b]; i64[a]; f16[]"},
    OpDef{.name = "aten.relu6",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::relu6),
          .samples = "f32[a, b]; i64[a]; f16[]"},
    OpDef{.name = "aten.rrelu",
          .schema = "(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
                    "training=False, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::rrelu),
          .samples = "f32[a, b]; f64[]"},
    OpDef{.name = "aten.selu",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::selu),
          .samples = "f32[a, b]; f64[]; bf16[a]"},
    OpDef{.name = "aten.silu",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::silu),
          .samples = "f32[a, b]; f64[]; bf16[a]; f16[a]"},
    OpDef{.name = "aten.softplus",
          .schema = "(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::softplus),
          .samples = "f32[a, b]; f64[], 2, 10; f16[a]; f32[a], 3; f32[a], 1, 0.5"},
    OpDef{.name = "aten.softshrink",
          .schema = "(Tensor self, Scalar lambd=0.5) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::softshrink),
          .samples = "f32[a, b]; f64[], 0.2"},
    OpDef{.name = "aten.threshold",
          .schema = "(Tensor self, Scalar threshold, Scalar value) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::threshold),
          .samples = "f32[a, b], 0.5, 0; f64[], 1, 2"},
};
static_assert(first_bad_row(kActivationOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> activation_ops() { return kActivationOps; }

}  // namespace modelport::ops
