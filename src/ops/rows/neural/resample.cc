// Images at other sizes: interpolation, and sampling at the points of a grid.
#include "ops/executorch/resample.h"

#include <array>
#include <cmath>

#include "ops/decompositions/neural.h"
#include "ops/executorch/adjust.h"
#include "ops/onnx/resample.h"
#include "ops/rules/windows.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops {
namespace {

/// floor(size * scale). A scale such as 2 or 0.5, whose numerator and power-of-two denominator are
/// small, is exact in floating point and so in integers.
Int scaled(const Int& size, double scale) {
  constexpr int kBits = 8;
  int exponent = 0;
  while (exponent < kBits && scale != std::floor(scale)) {
    scale *= 2;
    ++exponent;
  }
  const bool exact = scale == std::floor(scale) && std::abs(scale) < 1 << 20;
  if (exact) return shape::floor_div(size * static_cast<std::int64_t>(scale), 1 << exponent);
  const shape::Real factor(std::ldexp(scale, -exponent));
  return shape::floor(shape::Real::binary(shape::Real::Op::mul, shape::Real(size), factor));
}

std::optional<double> as_number(const ir::Arg& arg) {
  if (const double* number = arg.get<double>()) return *number;
  if (const Int* number = arg.get<Int>(); number != nullptr && number->is_constant()) {
    return static_cast<double>(*number->constant());
  }
  return std::nullopt;
}

Int scaled_by(Call& call, const Int& size, const ir::Arg& scale) {
  if (const std::optional<double> number = as_number(scale)) return scaled(size, *number);
  const shape::Real* symbolic = scale.get<shape::Real>();
  call.require(symbolic != nullptr, "a scale that is no number");
  return shape::floor(shape::Real::binary(shape::Real::Op::mul, shape::Real(size), *symbolic));
}

Results upsample(Call& call) {
  const std::vector<Int> sizes = call.ints("output_size");
  call.require(call.shape("self").size() == sizes.size() + 2, "input of the wrong rank");
  return one(call.dtype_of("self"), with_last(call.shape("self"), sizes));
}

Results upsample_vec(Call& call) {
  const Shape& shape = call.shape("input");
  const std::size_t axes = spatial_axes(call);
  call.require(shape.size() == axes + 2, "input of the wrong rank");
  std::vector<Int> sizes;
  if (call.has("output_size")) {
    sizes = per_axis(call, "output_size", axes);
  } else {
    const ir::ArgList* scales = call.arg("scale_factors").get<ir::ArgList>();
    call.require(scales != nullptr && scales->size() == axes, "neither a size nor scales");
    for (std::size_t i = 0; i < axes; ++i) {
      sizes.push_back(scaled_by(call, shape[2 + i], (*scales)[i]));
    }
  }
  return one(call.dtype_of("input"), with_last(shape, sizes));
}

/// Input [n, channels, ...], grid [n, ..., axes].
Results grid_sampler(Call& call) {
  const Shape& input = call.shape("input");
  Shape result = call.shape("grid");
  call.require(input.size() == result.size() && input.size() >= 4, "a grid of another rank");
  result[0] = agreed(call, input[0], result[0]);
  result.pop_back();
  return one(call.dtype_of("input"), with_axis(std::move(result), 1, input[1]));
}

Results affine_grid(Call& call) {
  const std::vector<Int> size = call.ints("size");
  call.require(size.size() == 4 || size.size() == 5, "a grid in two or three dimensions");
  Shape result = size;
  result.erase(result.begin() + 1);
  result.push_back(static_cast<std::int64_t>(size.size()) - 2);
  return one(call.dtype_of("theta"), std::move(result));
}

constexpr std::array kResampleOps{
    OpDef{.name = "aten._upsample_bicubic2d_aa",
          .schema = "(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = refuse("the runtime smooths with bilinear weights only"),
          .samples = "f32[a, 3, b, c], [2*b, 2*c], False; f32[a, 3, 4, b], [7, c], True"},
    OpDef{.name = "aten._upsample_bicubic2d_aa.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = refuse("the runtime smooths with bilinear weights only"),
          .samples = "f32[a, 3, b + 1, c], None, False, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], True, "
                     "None; f32[a, 3, b + 3, c + 4], [2, 3], False, None; f32[a, 3, b + 3, c + 4], "
                     "None, False, [0.7, 0.6]"},
    OpDef{.name = "aten._upsample_bilinear2d_aa",
          .schema = "(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = custom(executorch::upsample_bilinear2d_aa),
          .samples = "f32[a, 3, b, c], [2*b, 2*c], False; f32[a, 3, 4, b], [7, c], True; f32[2, 3, "
                     "8, 9], [4, 5], False"},
    OpDef{.name = "aten._upsample_bilinear2d_aa.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = custom(executorch::upsample_with_antialias),
          .samples = "f32[a, 3, b + 1, c], None, False, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], True, "
                     "None; f32[a, 3, b + 3, c + 4], [2, 3], False, None; f32[a, 3, b + 3, c + 4], "
                     "None, False, [0.7, 0.6]; f32[2, 3, 8, 9], [4, 5], False, None; f32[2, 3, 8, "
                     "9], None, False, [0.5, 0.7]"},
    OpDef{.name = "aten._upsample_lanczos2d_aa",
          .schema = "(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = refuse("the runtime smooths with bilinear weights only"),
          .samples = "f32[a, 3, b, c], [2*b, 2*c], False; f32[a, 3, 4, b], [7, c], True"},
    OpDef{.name = "aten._upsample_lanczos2d_aa.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = refuse("the runtime smooths with bilinear weights only"),
          .samples = "f32[a, 3, b + 1, c], None, False, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], True, "
                     "None; f32[a, 3, b + 3, c + 4], [2, 3], False, None"},
    OpDef{.name = "aten._upsample_nearest_exact1d",
          .schema = "(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples = "f32[a, 3, b], [2*b]; f32[a, 3, 4], [7]"},
    OpDef{.name = "aten._upsample_nearest_exact1d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples = "f32[a, 3, b + 1], None, [2.0]; f32[a, 3, 4], [b], None"},
    OpDef{.name = "aten._upsample_nearest_exact2d",
          .schema = "(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
                    "scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples = "f32[a, 3, b, c], [2*b, 2*c]; f32[a, 3, 4, b], [7, c]"},
    OpDef{.name = "aten._upsample_nearest_exact2d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples = "f32[a, 3, b + 1, c], None, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], None"},
    OpDef{.name = "aten._upsample_nearest_exact3d",
          .schema = "(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples = "f32[a, 3, b, c, 2], [2*b, 2*c, 3]; f32[a, 3, 4, b, 2], [7, c, 3]"},
    OpDef{.name = "aten._upsample_nearest_exact3d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples =
              "f32[a, 3, b + 1, c, 2], None, [2.0, 1.5, 2.0]; f32[a, 3, 4, 5, 2], [b, 7, 2], None"},
    OpDef{.name = "aten.affine_grid_generator",
          .schema = "(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
          .infer = affine_grid,
          .onnx = custom(onnx::affine_grid),
          .executorch = decompose(parts::affine_grid),
          .samples = "f32[a, 2, 3], [a, 3, b, c], False; f32[2, 3, 4], [2, 3, 4, b, c], True; "
                     "f32[a, 2, 3], [a, 3, 4, 5], False; f32[2, 3, 4], [2, 3, 2, 4, 5], True"},
    OpDef{.name = "aten.grid_sampler",
          .schema = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                    "align_corners) -> Tensor",
          .infer = grid_sampler,
          .onnx = custom(onnx::grid_sampler),
          .executorch = decompose(parts::grid_sampler),
          .samples = "f32[a, 3, 4, 5], f32[a, b, c, 2], 0, 0, False; f32[a, 3, b, 5, 2], f32[a, 2, "
                     "b, 3, 3], 1, 1, True; f32[2, 3, 4, 5], f32[2, 6, 7, 2], 0, 0, False"},
    OpDef{.name = "aten.grid_sampler_2d",
          .schema = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                    "align_corners) -> Tensor",
          .infer = grid_sampler,
          .onnx = custom(onnx::grid_sampler),
          .executorch = custom(executorch::grid_sampler_2d),
          .samples = "f32[a, 3, 4, 5], f32[a, b, c, 2], 0, 0, False; f32[a, 3, b, 5], f32[a, 2, b, "
                     "2], 2, 1, True; f32[a, 3, 4, 5], f32[a, b, c, 2], 0, 2, True; f32[2, 3, 4, "
                     "5], f32[2, 6, 7, 2], 0, 0, False; f32[2, 3, 4, 5], f32[2, 6, 7, 2], 1, 1, "
                     "True; f32[2, 3, 4, 5], f32[2, 6, 7, 2], 2, 2, False"},
    OpDef{.name = "aten.grid_sampler_3d",
          .schema = "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
                    "align_corners) -> Tensor",
          .infer = grid_sampler,
          .onnx = custom(onnx::grid_sampler),
          .executorch = decompose(parts::grid_sampler_by_gathering),
          .samples = "f32[a, 3, 4, 5, 2], f32[a, b, c, 2, 3], 0, 0, False; f32[a, 3, b, 5, 2], "
                     "f32[a, 2, b, 3, 3], 1, 1, True; f32[a, 3, 4, 5, 2], f32[a, b, c, 2, 3], 0, "
                     "2, False; f32[a, 3, 4, 5, 2], f32[a, b, c, 2, 3], 1, 2, True; f32[a, 3, 4, "
                     "5, 2], f32[a, b, c, 2, 3], 0, 1, True"},
    OpDef{.name = "aten.upsample_bicubic2d",
          .schema = "(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_bicubic),
          .samples = "f32[a, 3, b, c], [2*b, 2*c], False; f32[a, 3, 4, b], [7, c], True"},
    OpDef{.name = "aten.upsample_bicubic2d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_bicubic),
          .samples = "f32[a, 3, b + 1, c], None, False, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], True, "
                     "None; f32[a, 3, b + 1, c], None, False, [1.3, 2.1]; f32[a, 3, b, c], [c, b], "
                     "False, None; bf16[a, 3, 4, 5], [8, 7], False, None"},
    OpDef{.name = "aten.upsample_bilinear2d",
          .schema = "(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_linear),
          .samples = "f32[a, 3, b, c], [2*b, 2*c], False; f32[a, 3, 4, b], [7, c], True"},
    OpDef{.name = "aten.upsample_bilinear2d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .xnnpack = custom(xnnpack::upsample_bilinear2d),
          .samples =
              "f32[a, 3, b + 1, c], None, False, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], True, "
              "None; f32[a, 3, b + 1, c], None, False, [1.3, 2.1]; f32[a, 3, b, c], [c, 1], True, "
              "None; f32[a, 3, b, c], [c, 1], False, None; f64[a, 3, 4, 5], [8, 7], False, None"},
    OpDef{.name = "aten.upsample_linear1d",
          .schema = "(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) "
                    "-> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_linear),
          .samples = "f32[a, 3, b], [2*b], False; f32[a, 3, 4], [7], True"},
    OpDef{.name = "aten.upsample_linear1d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_linear),
          .samples = "f32[a, 3, b + 1], None, False, [2.0]; f32[a, 3, 4], [b], True, None; f32[a, "
                     "3, b + 1], None, False, [1.3]"},
    OpDef{.name = "aten.upsample_nearest1d",
          .schema = "(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_nearest),
          .samples = "f32[a, 3, b], [2*b]; f32[a, 3, 4], [7]"},
    OpDef{.name = "aten.upsample_nearest1d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_nearest),
          .samples = "f32[a, 3, b + 1], None, [2.0]; f32[a, 3, 4], [b], None; f32[a, 3, b + 1], "
                     "None, [0.5]"},
    OpDef{.name = "aten.upsample_nearest2d",
          .schema = "(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
                    "scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_nearest),
          .samples = "f32[a, 3, b, c], [2*b, 2*c]; f32[a, 3, 4, b], [7, c]"},
    OpDef{.name = "aten.upsample_nearest2d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .samples = "f32[a, 3, b + 1, c], None, [2.0, 1.5]; f32[a, 3, 4, 5], [b, 7], None; f32[a, "
                     "3, b + 2, c], None, [0.7, 3.3]; u8[a, 3, b + 1, c], None, [2.0, 2.0]; "
                     "bf16[a, 3, b + 1, c], None, [2.0, 3.0]; f32[a, 3, 14, b], [16, c], None"},
    OpDef{.name = "aten.upsample_nearest3d",
          .schema = "(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                    "scales_h=None, float? scales_w=None) -> Tensor",
          .infer = upsample,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples = "f32[a, 3, b, c, 2], [2*b, 2*c, 3]; f32[a, 3, 4, b, 2], [7, c, 3]"},
    OpDef{.name = "aten.upsample_nearest3d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_by_picking),
          .samples =
              "f32[a, 3, b + 1, c, 2], None, [2.0, 1.5, 2.0]; f32[a, 3, 4, 5, 2], [b, 7, 2], None"},
    OpDef{
        .name = "aten.upsample_trilinear3d",
        .schema = "(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, "
                  "float? scales_h=None, float? scales_w=None) -> Tensor",
        .infer = upsample,
        .onnx = custom(onnx::upsample),
        .executorch = decompose(parts::upsample_linear),
        .samples = "f32[a, 3, b, c, 2], [2*b, 2*c, 3], False; f32[a, 3, 4, b, 2], [7, c, 3], True"},
    OpDef{.name = "aten.upsample_trilinear3d.vec",
          .schema = "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                    "scale_factors) -> Tensor",
          .infer = upsample_vec,
          .onnx = custom(onnx::upsample),
          .executorch = decompose(parts::upsample_linear),
          .samples = "f32[a, 3, b + 1, c, 2], None, False, [2.0, 1.5, 2.0]; f32[a, 3, 4, 5, 2], "
                     "[b, 7, 2], True, None; f32[a, 3, b + 1, c, 2], None, False, [1.3, 1.7, 2.0]"},
};
static_assert(first_bad_row(kResampleOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> resample_ops() { return kResampleOps; }

}  // namespace modelport::ops