// Pools: by windows, or to a given size.
#include "ops/onnx/pool.h"

#include <array>

#include "ops/decompositions/neural.h"
#include "ops/rules/windows.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops {
namespace {

Shape pooled(Call& call, bool dilated) {
  const std::size_t axes = spatial_axes(call);
  const std::vector<Int> kernel = per_axis(call, "kernel_size", axes);
  const std::vector<Int> stride = per_axis(call, "stride", axes, kernel);
  const std::vector<Int> padding = per_axis(call, "padding", axes);
  const std::vector<Int> dilation =
      dilated ? per_axis(call, "dilation", axes) : std::vector<Int>(axes, 1);
  Shape result = call.shape("self");
  call.require(result.size() > axes, "input of the wrong rank");
  const std::size_t first = result.size() - axes;
  for (std::size_t i = 0; i < axes; ++i) {
    result[first + i] = window_size(call, result[first + i],
                                    {.kernel = kernel[i],
                                     .stride = stride[i],
                                     .padding = padding[i],
                                     .dilation = dilation[i],
                                     .ceil_mode = call.flag("ceil_mode")});
  }
  return result;
}

Results with_indices(Call& call, const Shape& shape) {
  return {ir::TensorType{call.dtype_of("self"), shape}, ir::TensorType{Dtype::i64, shape}};
}

Results max_pool(Call& call) { return one(call.dtype_of("self"), pooled(call, true)); }
Results avg_pool(Call& call) { return one(call.dtype_of("self"), pooled(call, false)); }
Results max_pool_with_indices(Call& call) { return with_indices(call, pooled(call, true)); }

Shape to_given_size(Call& call) {
  const std::vector<Int> sizes = per_axis(call, "output_size", spatial_axes(call));
  call.require(call.shape("self").size() > sizes.size(), "input of the wrong rank");
  return with_last(call.shape("self"), sizes);
}

Results adaptive_avg_pool(Call& call) { return one(call.dtype_of("self"), to_given_size(call)); }
Results adaptive_max_pool(Call& call) { return with_indices(call, to_given_size(call)); }

constexpr std::array kPoolOps{
    OpDef{.name = "aten._adaptive_avg_pool2d",
          .schema = "(Tensor self, SymInt[2] output_size) -> Tensor",
          .infer = adaptive_avg_pool,
          .onnx = custom(onnx::adaptive_avg_pool),
          .samples = "f32[a, 3, b, c], [2, 3]; f32[a, b, 5], [1, 1]"},
    OpDef{.name = "aten._adaptive_avg_pool3d",
          .schema = "(Tensor self, SymInt[3] output_size) -> Tensor",
          .infer = adaptive_avg_pool,
          .onnx = custom(onnx::adaptive_avg_pool),
          .executorch = decompose(parts::adaptive_avg_pool),
          .samples = "f32[a, 3, b, c, 4], [2, 3, 1]; f32[2, a, b, 5], [1, 1, 1]"},
    OpDef{.name = "aten.adaptive_avg_pool1d",
          .schema = "(Tensor self, int[1] output_size) -> Tensor",
          .infer = adaptive_avg_pool,
          .onnx = custom(onnx::adaptive_avg_pool),
          .executorch = decompose(parts::adaptive_avg_pool),
          .samples = "f32[a, 3, b], [2]; f32[a, b], [3]"},
    OpDef{.name = "aten.adaptive_avg_pool2d",
          .schema = "(Tensor self, SymInt[2] output_size) -> Tensor",
          .infer = adaptive_avg_pool,
          .onnx = custom(onnx::adaptive_avg_pool),
          .executorch = decompose(parts::adaptive_avg_pool),
          .xnnpack = custom(xnnpack::adaptive_avg_pool2d),
          .samples = "f32[a, 3, b, c], [2, 3]; f32[a, b, 5], [1, 1]; f32[a, 3, b, c], [c, 3]; "
                     "f32[a, 3, 8, 12], [4, 3]; f32[a, 3, 2*b, 6], [b, 4]; bf16[a, 3, b, c], [1, "
                     "1]; f64[a, 3, b, c], [2, 1]"},
    OpDef{.name = "aten.adaptive_avg_pool3d",
          .schema = "(Tensor self, SymInt[3] output_size) -> Tensor",
          .infer = adaptive_avg_pool,
          .onnx = custom(onnx::adaptive_avg_pool),
          .executorch = decompose(parts::adaptive_avg_pool),
          .samples = "f32[a, 3, b, c, 4], [2, 3, 1]; f32[2, a, b, 5], [1, 1, 1]"},
    OpDef{.name = "aten.adaptive_max_pool1d",
          .schema = "(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
          .infer = adaptive_max_pool,
          .onnx = custom(onnx::adaptive_max_pool),
          .executorch = decompose(parts::adaptive_max_pool),
          .samples = "f32[a, 3, b], [2]; f32[a, b], [3]; f32[a, 3, 6], [3]"},
    OpDef{.name = "aten.adaptive_max_pool2d",
          .schema = "(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
          .infer = adaptive_max_pool,
          .onnx = custom(onnx::adaptive_max_pool),
          .executorch = decompose(parts::adaptive_max_pool),
          .samples = "f32[a, 3, b, c], [2, 3]; f32[a, b, 5], [1, 1]; f32[a, 3, 8, 12], [4, 3]; "
                     "f32[3, 2*b, 6], [b, 3]"},
    OpDef{.name = "aten.adaptive_max_pool3d",
          .schema = "(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
          .infer = adaptive_max_pool,
          .onnx = custom(onnx::adaptive_max_pool),
          .executorch = refuse("the runtime has no kernel that tells places in a volume"),
          .samples = "f32[a, 3, b, c, 4], [2, 3, 1]; f32[2, a, b, 5], [1, 1, 1]"},
    OpDef{.name = "aten.avg_pool1d",
          .schema = "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
                    "ceil_mode=False, bool count_include_pad=True) -> Tensor",
          .infer = avg_pool,
          .onnx = custom(onnx::avg_pool),
          .executorch = decompose(parts::avg_pool),
          .samples = "f32[a, 3, b + 4], [3]; f32[a, b + 4], [2], [1], [1], True; f32[a, 2, b + 4], "
                     "[3], [2], [1], True, False"},
    OpDef{.name = "aten.avg_pool2d",
          .schema =
              "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
              "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
          .infer = avg_pool,
          .onnx = custom(onnx::avg_pool),
          .xnnpack = custom(xnnpack::avg_pool2d),
          .samples = "f32[a, 3, b + 4, 8], [3, 2]; f32[2, b + 4, c + 4], [2], [1, 2], [1], True; "
                     "f32[a, 2, b + 4, 9], [3], [2], [1], True, False, 4; f32[a, 2, b + 4, 9], [3, "
                     "2], [2], [1], False, True, 3; bf16[a, 2, b + 4, 9], [3]"},
    OpDef{.name = "aten.avg_pool3d",
          .schema =
              "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
              "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
          .infer = avg_pool,
          .onnx = custom(onnx::avg_pool),
          .executorch = decompose(parts::avg_pool),
          .samples = "f32[a, 3, b + 4, 8, 5], [3, 2, 1]; f32[2, b + 4, c + 4, 7], [2], [1, 2, 3], "
                     "[1], True"},
    OpDef{.name = "aten.max_pool1d",
          .schema = "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
                    "int[1] dilation=[1], bool ceil_mode=False) -> Tensor",
          .infer = max_pool,
          .onnx = custom(onnx::max_pool),
          .executorch = decompose(parts::max_pool),
          .samples = "f32[a, 3, b + 4], [3]; f32[a, b + 4], [2], [1], [1], [2], True; f32[a, 2, b "
                     "+ 4], [3], [2], [1], [1], True"},
    OpDef{.name = "aten.max_pool1d_with_indices",
          .schema = "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], "
                    "int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
          .infer = max_pool_with_indices,
          .onnx = custom(onnx::max_pool),
          .executorch = decompose(parts::max_pool1d_with_indices),
          .samples = "f32[a, 3, b + 4], [3]; f32[a, b + 4], [2], [1], [1], [2], True"},
    OpDef{.name = "aten.max_pool2d",
          .schema = "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
                    "dilation=1, bool ceil_mode=False) -> Tensor",
          .infer = max_pool,
          .onnx = custom(onnx::max_pool),
          .executorch = decompose(parts::max_pool),
          .xnnpack = custom(xnnpack::max_pool2d),
          .samples = "f32[a, 3, b + 4, 8], [3, 2]; f32[2, b + 4, c + 4], [2], [1, 2], [1], [1, 2], "
                     "True; f32[a, 2, b + 4, 9], [3], [2], [1], [1], True; bf16[a, 3, b + 4, 8], "
                     "[3, 2]; f64[a, 3, b + 4, 8], [3, 2]"},
    OpDef{.name = "aten.max_pool2d_with_indices",
          .schema = "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
                    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
          .infer = max_pool_with_indices,
          .onnx = custom(onnx::max_pool),
          .samples =
              "f32[a, 3, b + 4, 8], [3, 2]; f32[2, b + 4, c + 4], [2], [1, 2], [1], [1, 2], True"},
    OpDef{.name = "aten.max_pool3d",
          .schema = "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
                    "dilation=1, bool ceil_mode=False) -> Tensor",
          .infer = max_pool,
          .onnx = custom(onnx::max_pool),
          .executorch = decompose(parts::max_pool),
          .samples = "f32[a, 3, b + 4, 8, 5], [3, 2, 1]; f32[2, b + 4, c + 4, 7], [2], [1, 2, 3], "
                     "[1], [1], True"},
    OpDef{.name = "aten.max_pool3d_with_indices",
          .schema = "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
                    "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
          .infer = max_pool_with_indices,
          .onnx = custom(onnx::max_pool),
          .executorch = refuse("the runtime has no kernel that tells places in a volume"),
          .samples = "f32[a, 3, b + 4, 8, 5], [3, 2, 1]; f32[2, b + 4, c + 4, 7], [2], [1, 2, 3], "
                     "[1], [1], True"},
    OpDef{.name = "aten.max_unpool2d",
          .schema = "(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
          .infer = adaptive_avg_pool,
          .onnx = custom(onnx::max_unpool),
          .executorch = decompose(parts::max_unpool),
          .samples = "f32[a, 2, 2, 2], i64<4>[a, 2, 2, 2], [4, b + 4]; f32[a, b, 2], i64<4>[a, b, "
                     "2], [4, 5]"},
};
static_assert(first_bad_row(kPoolOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> pool_ops() { return kPoolOps; }

}  // namespace modelport::ops