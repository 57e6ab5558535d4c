// Truths read out of tensors: from there on a symbol stands for them, with the value of the example
// run as its hint.
#include <array>

#include "ops/executorch/guarded.h"
#include "ops/onnx/compare.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results read_truth(Call& call) {
  const bool* seen = std::get_if<bool>(&call.site().observed_number);
  return {ir::ScalarType{call.dims().fresh_bool(seen != nullptr && *seen)}};
}

constexpr std::array kScalarOps{
    OpDef{.name = "aten.allclose",
          .schema = "(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float "
                    "atol=1e-08, bool equal_nan=False) -> bool",
          .infer = read_truth,
          .handling = Handling::all_close,
          .onnx = custom(onnx::allclose),
          .executorch = custom(executorch::allclose),
          .samples = "f32[a, b], f32[b]; f64[a], f64[a], 0.5"},
    OpDef{.name = "aten.equal",
          .schema = "(Tensor self, Tensor other) -> bool",
          .infer = read_truth,
          .handling = Handling::equal,
          .onnx = custom(onnx::equal),
          .executorch = custom(executorch::equal),
          .samples = "f32[a, b], f32[a, b]; i64[a], i64[b]"},
    OpDef{.name = "aten.is_nonzero",
          .schema = "(Tensor self) -> bool",
          .infer = read_truth,
          .handling = Handling::read_truth,
          .onnx = custom(onnx::is_nonzero),
          .executorch = custom(executorch::is_nonzero),
          .samples = "bool[]; f32[1]; i64[]"},
};
static_assert(first_bad_row(kScalarOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> scalar_ops() { return kScalarOps; }

}  // namespace modelport::ops
