// Losses. Reduction is 0: none, 1: mean, 2: sum.
#include "ops/onnx/loss.h"

#include <array>

#include "ops/decompositions/loss.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results reduced(Call& call, Dtype dtype, Shape shape) {
  return one(dtype, call.number("reduction") == 0 ? std::move(shape) : Shape{});
}

Results elementwise_loss(Call& call) {
  return reduced(call, promote(call, {"self", "target"}), broadcast_args(call, {"self", "target"}));
}

Results poisson_nll_loss(Call& call) {
  return reduced(call, promote(call, {"input", "target"}),
                 broadcast_args(call, {"input", "target"}));
}

/// The scores without their class axis, which is the second one where there is a batch.
Shape without_classes(const Call& call) {
  Shape shape = call.shape("self");
  shape.erase(shape.begin() + (shape.size() > 1 ? 1 : 0));
  return shape;
}

Results class_loss(Call& call) {
  return reduced(call, call.dtype_of("self"), without_classes(call));
}

Results class_loss_forward(Call& call) {
  Results results = class_loss(call);
  results.push_back(ir::TensorType{call.dtype_of("self"), {}});  // the weight in all
  return results;
}

Results ranking_loss(Call& call) {
  return reduced(call, promote(call, {"input1", "input2", "target"}),
                 broadcast_args(call, {"input1", "input2", "target"}));
}

/// A distance along the last axis of two operands.
Shape distance_shape(Call& call, std::string_view a, std::string_view b) {
  Shape shape = broadcast_args(call, {a, b});
  call.require(!shape.empty(), "a distance needs at least one axis");
  return reduce(shape, {static_cast<std::int64_t>(shape.size()) - 1}, false);
}

Results triplet_loss(Call& call) {
  const Shape positive = distance_shape(call, "anchor", "positive");
  const Shape negative = distance_shape(call, "anchor", "negative");
  return reduced(call, promote(call, {"anchor", "positive", "negative"}),
                 broadcast(call, positive, negative));
}

// log_probs is [time, batch, classes], or [time, classes] without a batch.
Results ctc_loss(Call& call) {
  const Shape& scores = call.shape("log_probs");
  return reduced(call, call.dtype_of("log_probs"), scores.size() == 3 ? Shape{scores[1]} : Shape{});
}

constexpr std::array kLossOps{
    OpDef{.name = "aten.binary_cross_entropy",
          .schema = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::binary_cross_entropy),
          .executorch = decompose(parts::binary_cross_entropy),
          .samples =
              "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], f32[b], 0; f64[a], f64[a], None, 2"},
    OpDef{.name = "aten.binary_cross_entropy_with_logits",
          .schema = "(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
                    "int reduction=1) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::binary_cross_entropy_with_logits),
          .executorch = decompose(parts::binary_cross_entropy_with_logits),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], f32[b], None, 0; f64[a], f64[a], "
                     "None, f64[a], 2; f32[a, b], f32[a, b], reduction=0"},
    OpDef{.name = "aten.cross_entropy_loss",
          .schema = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                    "ignore_index=-100, float label_smoothing=0.) -> Tensor",
          .infer = class_loss,
          .onnx = custom(onnx::cross_entropy_loss),
          .executorch = decompose(parts::cross_entropy_loss),
          .samples =
              "f32[a, 5], i64<5>[a]; f32[a, 5, b], i64<5>[a, b], f32[5], 0; f32[a, 5], f32[a, "
              "5], None, 0; f32[5], i64<5>[]; f32[a, 5], i64<5>[a], reduction=2, "
              "label_smoothing=0.1; f16[a, 5], i64<5>[a], reduction=0; f32[a, 5], i64<5>[a], "
              "f32[5], label_smoothing=0.2; f32[a, 5], i64<5>[a], ignore_index=2; f32[a, 5], "
              "f32[a, 5], f32[5], label_smoothing=0.1; f32[a, 5, b], i64<5>[a, b], "
              "ignore_index=1, label_smoothing=0.3; bf16[a, 5], i64<5>[a]"},
    OpDef{.name = "aten.ctc_loss.Tensor",
          .schema =
              "(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
              "int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
          .infer = ctc_loss,
          .onnx = refuse("ONNX has no CTC loss"),
          .executorch = refuse("the runtime has no CTC loss"),
          .samples = "f32[a + 10, b, 5], i64<5>[b, 3], i64<1>[b], i64<1>[b]; f32[a + 10, b, 5], "
                     "i64<5>[b, 3], i64<1>[b], i64<1>[b], reduction=0, zero_infinity=True"},
    OpDef{.name = "aten.huber_loss",
          .schema = "(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::huber_loss),
          .executorch = decompose(parts::huber_loss),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], 0; f64[a], f64[a], 2; f32[a, b], "
                     "f32[b], 0; f32[a, b], f32[a, b], 1, 0.5"},
    OpDef{.name = "aten.kl_div",
          .schema =
              "(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::kl_div),
          .executorch = decompose(parts::kl_div),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], 0; f64[a], f64[a], 2; f32[a, b], "
                     "f32[a, b], reduction=0, log_target=True"},
    OpDef{.name = "aten.l1_loss",
          .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::l1_loss),
          .executorch = decompose(parts::l1_loss),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], 0; f64[a], f64[a], 2; f32[a, b], "
                     "f32[b], 0"},
    OpDef{.name = "aten.margin_ranking_loss",
          .schema = "(Tensor input1, Tensor input2, Tensor target, float margin=0., int "
                    "reduction=1) -> Tensor",
          .infer = ranking_loss,
          .onnx = custom(onnx::margin_ranking_loss),
          .executorch = decompose(parts::margin_ranking_loss),
          .samples = "f32[a], f32[a], f32[a]; f32[a, b], f32[a, b], f32[a, b], 0.5, 0; f32[a, 1], "
                     "f32[b], f32[], reduction=0"},
    OpDef{.name = "aten.mse_loss",
          .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::mse_loss),
          .executorch = decompose(parts::mse_loss),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], 0; f64[a], f64[a], 2; f32[a, b], "
                     "f32[b], 0; bf16[a, b], bf16[a, b]"},
    OpDef{.name = "aten.nll_loss",
          .schema = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                    "ignore_index=-100) -> Tensor",
          .infer = class_loss,
          .onnx = custom(onnx::nll_loss),
          .executorch = decompose(parts::nll_loss),
          .samples = "f32[a, 5], i64<5>[a]; f32[a, 5], i64<5>[a], f32[5], 0; f32[5], i64<5>[]; "
                     "f32[a, 5], i64<5>[a], f32[5], 1, 2"},
    OpDef{
        .name = "aten.nll_loss2d",
        .schema = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                  "ignore_index=-100) -> Tensor",
        .infer = class_loss,
        .onnx = custom(onnx::nll_loss),
        .executorch = decompose(parts::nll_loss),
        .samples = "f32[a, 5, b, c], i64<5>[a, b, c]; f32[a, 5, b, c], i64<5>[a, b, c], f32[5], 0"},
    OpDef{.name = "aten.nll_loss2d_forward",
          .schema = "(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
                    "ignore_index) -> (Tensor output, Tensor total_weight)",
          .infer = class_loss_forward,
          .onnx = custom(onnx::nll_loss_forward),
          .executorch = decompose(parts::nll_loss_forward),
          .samples = "f32[a, 5, b, c], i64<5>[a, b, c], None, 1, -100; f32[a, 5, b, c], i64<5>[a, "
                     "b, c], f32[5], 0, 2"},
    OpDef{.name = "aten.nll_loss_forward",
          .schema = "(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
                    "ignore_index) -> (Tensor output, Tensor total_weight)",
          .infer = class_loss_forward,
          .onnx = custom(onnx::nll_loss_forward),
          .executorch = decompose(parts::nll_loss_forward),
          .samples = "f32[a, 5], i64<5>[a], None, 1, -100; f32[a, 5], i64<5>[a], f32[5], 0, -100"},
    OpDef{.name = "aten.nll_loss_nd",
          .schema = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                    "ignore_index=-100) -> Tensor",
          .infer = class_loss,
          .onnx = custom(onnx::nll_loss),
          .executorch = decompose(parts::nll_loss),
          .samples = "f32[a, 5], i64<5>[a]; f32[a, 5, b], i64<5>[a, b], None, 0; f32[a, 5, b, c], "
                     "i64<5>[a, b, c], f32[5], 2"},
    OpDef{.name = "aten.poisson_nll_loss",
          .schema = "(Tensor input, Tensor target, bool log_input, bool full, float eps, int "
                    "reduction) -> Tensor",
          .infer = poisson_nll_loss,
          .onnx = custom(onnx::poisson_nll_loss),
          .executorch = decompose(parts::poisson_nll_loss),
          .samples = "f32[a, b], f32[a, b], True, False, 1e-8, 0; f32[a], f32[a], False, True, "
                     "1e-8, 1; f32[a, b], f32[a, b], True, True, 1e-8, 2"},
    OpDef{.name = "aten.smooth_l1_loss",
          .schema = "(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::smooth_l1_loss),
          .executorch = decompose(parts::smooth_l1_loss),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], 0; f64[a], f64[a], 2; f32[a, b], "
                     "f32[b], 0; f32[a, b], f32[a, b], 1, 0.5"},
    OpDef{.name = "aten.soft_margin_loss",
          .schema = "(Tensor self, Tensor target, int reduction=1) -> Tensor",
          .infer = elementwise_loss,
          .onnx = custom(onnx::soft_margin_loss),
          .executorch = decompose(parts::soft_margin_loss),
          .samples = "f32[a, b], f32[a, b]; f32[a, b], f32[a, b], 0; f64[a], f64[a], 2"},
    OpDef{.name = "aten.triplet_margin_loss",
          .schema =
              "(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., "
              "float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
          .infer = triplet_loss,
          .onnx = custom(onnx::triplet_margin_loss),
          .executorch = decompose(parts::triplet_margin_loss),
          .samples = "f32[a, b], f32[a, b], f32[a, b]; f32[a, b], f32[a, b], f32[a, b], "
                     "reduction=0; f32[a, b], f32[a, b], f32[a, b], swap=True, p=1"},
};
static_assert(first_bad_row(kLossOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> loss_ops() { return kLossOps; }

}  // namespace modelport::ops
