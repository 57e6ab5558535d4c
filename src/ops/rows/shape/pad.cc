// Borders around a tensor, patches cut from images and put back, triangles and diagonals.
#include "ops/onnx/pad.h"

#include <array>

#include "ops/decompositions/shape.h"
#include "ops/executorch/adjust.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/shape.h"

namespace modelport::ops {
namespace {

Results pad_by(Call& call, std::string_view amounts) {
  const std::vector<Int> pad = call.ints(amounts);
  Shape result = call.shape("self");
  call.require(pad.size() % 2 == 0 && pad.size() / 2 <= result.size(),
               "pad takes two amounts for each axis, last axis first");
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    Int& size = result[result.size() - 1 - i];
    size += pad[2 * i] + pad[2 * i + 1];
  }
  return one(call.dtype_of("self"), std::move(result));
}

Results pad(Call& call) { return pad_by(call, "pad"); }
Results padding(Call& call) { return pad_by(call, "padding"); }

Results pixel_shuffle(Call& call) {
  const Int factor = call.integer("upscale_factor");
  Shape result = call.shape("self");
  const std::size_t rank = result.size();
  call.require(rank >= 3, "pixel_shuffle needs channels, height and width");
  result[rank - 3] = divided(call, result[rank - 3], factor * factor);
  result[rank - 2] *= factor;
  result[rank - 1] *= factor;
  return one(call.dtype_of("self"), std::move(result));
}

Results pixel_unshuffle(Call& call) {
  const Int factor = call.integer("downscale_factor");
  Shape result = call.shape("self");
  const std::size_t rank = result.size();
  call.require(rank >= 3, "pixel_unshuffle needs channels, height and width");
  result[rank - 3] *= factor * factor;
  result[rank - 2] = divided(call, result[rank - 2], factor);
  result[rank - 1] = divided(call, result[rank - 1], factor);
  return one(call.dtype_of("self"), std::move(result));
}

Results im2col(Call& call) {
  const std::vector<Int> kernel = call.ints("kernel_size");
  const std::vector<Int> dilation = call.ints("dilation");
  const std::vector<Int> padding = call.ints("padding");
  const std::vector<Int> stride = call.ints("stride");
  const Shape& shape = call.shape("self");
  const std::size_t first = shape.size() - 2;
  call.require(shape.size() >= 3, "im2col takes images");
  Int windows = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    windows *= window_size(call, shape[first + i],
                           {.kernel = size_at(call, kernel, i),
                            .stride = size_at(call, stride, i),
                            .padding = size_at(call, padding, i),
                            .dilation = size_at(call, dilation, i)});
  }
  Shape result = leading(shape, static_cast<std::int64_t>(first));
  result.back() *= kernel[0] * kernel[1];
  result.push_back(windows);
  return one(call.dtype_of("self"), std::move(result));
}

Results col2im(Call& call) {
  const std::vector<Int> kernel = call.ints("kernel_size");
  const std::vector<Int> size = call.ints("output_size");
  Shape result = without_axis(call.shape("self"), call.rank("self") - 1);
  call.require(!result.empty(), "col2im takes columns");
  result.back() = divided(call, result.back(), size_at(call, kernel, 0) * size_at(call, kernel, 1));
  return one(call.dtype_of("self"), joined(std::move(result), size));
}

Results diag_embed(Call& call) {
  const std::int64_t rank = call.rank("self") + 1;
  const std::int64_t a = axis_of(call, "dim1", rank);
  const std::int64_t b = axis_of(call, "dim2", rank);
  const std::int64_t offset = call.number("offset");
  const Int size = size_at(call, call.shape("self"), -1) + std::abs(offset);
  Shape result = without_axis(call.shape("self"), rank - 2);
  result = with_axis(std::move(result), std::min(a, b), size);
  return one(call.dtype_of("self"), with_axis(std::move(result), std::max(a, b), size));
}

Results diagflat(Call& call) {
  const Int size = numel(call.shape("self")) + std::abs(call.number("offset"));
  return one(call.dtype_of("self"), {size, size});
}

constexpr std::array kPadOps{
    OpDef{.name = "aten._pad_circular",
          .schema = "(Tensor self, SymInt[] pad) -> Tensor",
          .infer = pad,
          .onnx = custom(onnx::circular_pad),
          .executorch = decompose(parts::pad_circular),
          .samples = "f32[a, b, 6], [2, 2]; f32[a, 2, 5, 6], [0, 3, 1, 1]"},
    OpDef{.name = "aten.col2im",
          .schema = "(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, "
                    "int[2] padding, int[2] stride) -> Tensor",
          .infer = col2im,
          .onnx = custom(onnx::col2im),
          .executorch = decompose(parts::col2im),
          .samples =
              "f32[a, 12, 20], [5, 6], [2, 2], [1, 1], [0, 0], [1, 1]; f32[12*a, 4], [4, 4], [2, "
              "2], [1, 1], [0, 0], [2, 2]; f32[a, 12, 30], [4, 5], [2, 2], [1, 1], [1, 1], [1, 1]; "
              "f64[a, 12, 9], [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]; f32[a, 8, 9], [5, 6], [2, "
              "2], [2, 1], [0, 1], [1, 3]; f32[a, 4*b, 4], [4, 4], [2, 2], [1, 1], [0, 0], [2, 2]"},
    OpDef{.name = "aten.constant_pad_nd",
          .schema = "(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
          .infer = pad,
          .onnx = custom(onnx::constant_pad),
          .executorch = custom(executorch::constant_pad_nd),
          .xnnpack = custom(xnnpack::pad),
          .samples = "f32[a, b], [1, 2]; f32[a, b], [-1, 1, 2, c], 1; bool[a, b], [0, 1]; i64[a, "
                     "b], [1, 1], 3; u8[a, b], [1, 1], 3; bool[a, b], [1, 1], True"},
    OpDef{.name = "aten.diag_embed",
          .schema = "(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
          .infer = diag_embed,
          .onnx = custom(onnx::diag_embed),
          .executorch = decompose(parts::diag_embed),
          .samples = "f32[a, b]; f32[a, b], 1, 0, -1; f32[a], -2; bool[a, b]; c64[a, b], 1; f32[2, "
                     "a, b], -1, 1, 3; i64[a], 2"},
    OpDef{.name = "aten.diagflat",
          .schema = "(Tensor self, int offset=0) -> Tensor",
          .infer = diagflat,
          .onnx = custom(onnx::diagflat),
          .executorch = decompose(parts::diagflat),
          .samples = "f32[a, b]; f32[a], -2"},
    OpDef{.name = "aten.im2col",
          .schema = "(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "
                    "stride) -> Tensor",
          .infer = im2col,
          .onnx = custom(onnx::im2col),
          .executorch = decompose(parts::im2col),
          .samples = "f32[a, 3, b + 4, 8], [3, 2], [1, 1], [0, 1], [1, 2]; f32[2, b + 6, 9], [2, "
                     "3], [2, 1], [1, 0], [2, 3]; f32[a, 2, 6, 7], [2, 2], [1, 1], [1, 1], [2, 2]; "
                     "f16[a, 2, 6, 7], [2, 2], [2, 1], [0, 0], [1, 1]"},
    OpDef{
        .name = "aten.pad",
        .schema = "(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
        .infer = pad,
        .onnx = custom(onnx::pad),
        .executorch = decompose(parts::pad),
        .samples = "f32[a, b], [1, 2]; f32[a, b, 5], [1, 0, 2, 3], \"constant\", 1.5; f32[a, b, "
                   "5], [2, 1], \"reflect\"; f32[a, b, 5], [2, 1], \"replicate\"; f32[a, b, 6], "
                   "[2, 2], \"circular\"; f32[a, 6], [-1, -2]; f32[a, 6], [0, b]; f32[a, b + 3, "
                   "6], [-1, 2], \"reflect\"; f32[a, 2, 6], [1, -2], \"replicate\"; f32[a, 2, 6], "
                   "[2, -1], \"circular\"; f32[a, 2, 6], [-1, 3], \"circular\"; i64[a, b], [1, 1], "
                   "\"constant\", 3.0; f32[a, 6], [1, b], \"constant\", -1.5; f32[a, 2, 5, 6], [1, "
                   "1, 2, 2], \"reflect\"; f32[a, 2, 5, 6], [1, 1, 2, 2], \"replicate\"; f32[a, 2, "
                   "3, 5, 6], [1, 1, 2, 2, 1, 0], \"circular\"; bool[a, b], [1, 0]; f16[a, b], [1, "
                   "1], \"constant\", 2.0; bf16[a, b], [1, 1]; f32[a, b], [0, 0]; c64[a, b], [1, "
                   "2]; f32[a, b, 4], [0, 0, -1, 1]; i16[a, b], [1, 1]; f32[a, 2, b], [b - 1, 1], "
                   "\"reflect\"; f32[0, b], [1, 1, 2, 0]"},
    OpDef{.name = "aten.pixel_shuffle",
          .schema = "(Tensor self, int upscale_factor) -> Tensor",
          .infer = pixel_shuffle,
          .onnx = custom(onnx::pixel_shuffle),
          .samples = "f32[a, 8, b, 3], 2; f32[9*a, b, 4], 3; f16[a, 8, b, 3], 2; i64[a, 4, 2, 3], "
                     "2; f32[2, a, 4, b, 3], 2"},
    OpDef{.name = "aten.pixel_unshuffle",
          .schema = "(Tensor self, int downscale_factor) -> Tensor",
          .infer = pixel_unshuffle,
          .onnx = custom(onnx::pixel_unshuffle),
          .samples = "f32[a, 3, 2*b, 4], 2; f32[a, 3*b, 6], 3; f32[2, a, 3, 4, 2*b], 2"},
    OpDef{.name = "aten.reflection_pad1d",
          .schema = "(Tensor self, SymInt[2] padding) -> Tensor",
          .infer = padding,
          .onnx = custom(onnx::reflection_pad),
          .samples = "f32[a, b + 2], [1, 2]; f32[a, 3, 5], [0, 3]"},
    OpDef{.name = "aten.reflection_pad2d",
          .schema = "(Tensor self, SymInt[4] padding) -> Tensor",
          .infer = padding,
          .onnx = custom(onnx::reflection_pad),
          .samples = "f32[a, b + 2, 4], [1, 2, 0, 1]; f32[a, 3, 5, 6], [0, 3, 1, 1]"},
    OpDef{.name = "aten.reflection_pad3d",
          .schema = "(Tensor self, SymInt[6] padding) -> Tensor",
          .infer = padding,
          .onnx = custom(onnx::reflection_pad),
          .samples =
              "f32[a, 3, b + 2, 4, 4], [1, 2, 0, 1, 1, 1]; f32[a, 3, 5, 6], [0, 3, 1, 1, 0, 1]"},
    OpDef{.name = "aten.replication_pad1d",
          .schema = "(Tensor self, SymInt[2] padding) -> Tensor",
          .infer = padding,
          .onnx = custom(onnx::replication_pad),
          .samples = "f32[a, b], [1, 2]; f32[a, 3, 5], [0, 7]"},
    OpDef{.name = "aten.replication_pad2d",
          .schema = "(Tensor self, SymInt[4] padding) -> Tensor",
          .infer = padding,
          .onnx = custom(onnx::replication_pad),
          .samples = "f32[a, b, 4], [1, 2, 0, 1]; f32[a, 3, b, 6], [0, 3, 1, 1]"},
    OpDef{.name = "aten.replication_pad3d",
          .schema = "(Tensor self, SymInt[6] padding) -> Tensor",
          .infer = padding,
          .onnx = custom(onnx::replication_pad),
          .samples = "f32[a, 3, b, 4, 4], [1, 2, 0, 1, 1, 1]; f32[3, a, b, 6], [0, 3, 1, 1, 0, 1]"},
    OpDef{.name = "aten.tril",
          .schema = "(Tensor self, SymInt diagonal=0) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::tril),
          .samples = "f32[a, b]; f32[3, a, a], -1; i64[a, b], 2; bool[a, b], -1; f16[a, b]; "
                     "bf16[a, b], 1; u8[a, b]; i32[a, a], 1; f32[a, b], b - 2; c64[a, b]; f32[3, "
                     "a, b], 100; f32[a, b], -100; f64[2, 3, a, b], 1"},
    OpDef{.name = "aten.triu",
          .schema = "(Tensor self, SymInt diagonal=0) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::triu),
          .executorch = decompose(parts::triu),
          .samples = "f32[a, b]; f32[3, a, a], 1; i64[a, b], 2; bool[a, b], -1; f16[a, b]; bf16[a, "
                     "b], 1; u8[a, b]; i32[a, a], 1; f32[a, b], b - 2; c64[a, b]; f32[3, a, b], "
                     "100; f32[a, b], -100; f64[2, 3, a, b], 1"},
};
static_assert(first_bad_row(kPadOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> pad_ops() { return kPadOps; }

}  // namespace modelport::ops