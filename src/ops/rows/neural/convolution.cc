// Convolutions, forward and transposed, on batches or on a single sample.
#include "ops/onnx/convolution.h"

#include <array>

#include "ops/decompositions/neural.h"
#include "ops/rules/windows.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops {
namespace {

struct Convolution {
  std::vector<Int> stride, padding, dilation, output_padding;
  bool same = false;  // padded so that the size stays
  bool transposed = false;
};

Int size_along(Call& call, const Int& size, const Int& kernel, const Convolution& c,
               std::size_t i) {
  if (c.transposed) {
    return (size - 1) * c.stride[i] - 2 * c.padding[i] + c.dilation[i] * (kernel - 1) +
           c.output_padding[i] + 1;
  }
  if (c.same) return size;
  return window_size(call, size,
                     {.kernel = kernel,
                      .stride = c.stride[i],
                      .padding = c.padding[i],
                      .dilation = c.dilation[i]});
}

/// Input [batch, channels, ...] or [channels, ...]; weight [out, in / groups, ...], the first two
/// the other way round when transposed.
Results convolve(Call& call, const Convolution& convolution) {
  const Shape& weight = call.shape("weight");
  const std::size_t axes = convolution.dilation.size();
  call.require(weight.size() == axes + 2, "a weight of the wrong rank");
  Shape result = call.shape("input");
  call.require(result.size() == axes + 2 || result.size() == axes + 1, "input of the wrong rank");
  const std::size_t channels = result.size() - axes - 1;
  const Int groups = call.integer("groups");
  const bool transposed = convolution.transposed;
  call.require(call.equal(result[channels], transposed ? weight[0] : weight[1] * groups),
               "input channels that do not fit the weight");
  result[channels] = transposed ? weight[1] * groups : weight[0];
  for (std::size_t i = 0; i < axes; ++i) {
    Int& size = result[channels + 1 + i];
    size = size_along(call, size, weight[2 + i], convolution, i);
  }
  return one(call.dtype_of("input"), std::move(result));
}

Results conv(Call& call) {
  const std::size_t axes = spatial_axes(call);
  return convolve(call, {.stride = per_axis(call, "stride", axes),
                         .padding = per_axis(call, "padding", axes),
                         .dilation = per_axis(call, "dilation", axes),
                         .output_padding = {}});
}

Results conv_named_padding(Call& call) {
  const std::size_t axes = spatial_axes(call);
  return convolve(call, {.stride = per_axis(call, "stride", axes),
                         .padding = std::vector<Int>(axes, 0),
                         .dilation = per_axis(call, "dilation", axes),
                         .output_padding = {},
                         .same = call.string("padding") == "same"});
}

Results conv_transpose(Call& call) {
  const std::size_t axes = spatial_axes(call);
  return convolve(call, {.stride = per_axis(call, "stride", axes),
                         .padding = per_axis(call, "padding", axes),
                         .dilation = per_axis(call, "dilation", axes),
                         .output_padding = per_axis(call, "output_padding", axes),
                         .transposed = true});
}

Results convolution(Call& call) {
  const std::size_t axes = call.shape("weight").size() - 2;
  return convolve(call, {.stride = per_axis(call, "stride", axes),
                         .padding = per_axis(call, "padding", axes),
                         .dilation = per_axis(call, "dilation", axes),
                         .output_padding = per_axis(call, "output_padding", axes),
                         .transposed = call.flag("transposed")});
}

Results conv_tbc(Call& call) {
  const Shape& weight = call.shape("weight");
  Shape result = call.shape("self");
  call.require(result.size() == 3 && weight.size() == 3, "conv_tbc takes three axes");
  result[0] = result[0] + 2 * call.integer("pad") - weight[0] + 1;
  result[2] = weight[2];
  return one(call.dtype_of("self"), std::move(result));
}

Results causal_convolution(Call& call) {
  const Shape& input = call.shape("input");
  const Shape& weight = call.shape("weight");
  const Shape& state = call.shape("state");
  call.require(input.size() == 3 && weight.size() == 3 && state.size() == 3,
               "a causal convolution needs three axes");
  call.require(call.equal(input[1], weight[0]), "input channels that do not fit the weight");
  return {call.tensor("input"), call.tensor("state")};
}

constexpr std::array kConvolutionOps{
    OpDef{.name = "aten._convolution",
          .schema =
              "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
              "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool "
              "benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
          .infer = convolution,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve),
          .samples = "f32[a, 4, b + 3], f32[6, 4, 3], None, [1], [1], [1], False, [0], 1, False, "
                     "False, False, False; f32[a, 4, b, 5], f32[4, 2, 3, 3], f32[4], [2, 1], [1, "
                     "0], [1, 1], True, [1, 0], 2, False, False, False, False"},
    OpDef{.name = "aten.conv1d",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], "
                    "SymInt[1] padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
          .infer = conv,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve_by_name),
          .xnnpack = custom(xnnpack::convolution),
          .samples = "f32[a, 4, b + 3], f32[6, 4, 3]; f32[a, 4, b + 6], f32[6, 2, 3], f32[6], [2], "
                     "[1], [2], 2; f32[4, b + 3], f32[6, 4, 3]; bf16[a, 4, b + 3], bf16[6, 4, 3], "
                     "bf16[6]; f64[a, 4, b + 3], f64[6, 4, 3]; f16[a, 4, b + 3], f16[4, 1, 3], "
                     "f16[4], [1], [1], [1], 4"},
    OpDef{.name = "aten.conv1d.padding",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str "
                    "padding=\"valid\", SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
          .infer = conv_named_padding,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve_by_name),
          .samples = "f32[a, 4, b + 3], f32[6, 4, 4], None, [1], \"same\"; f32[a, 4, b + 6], "
                     "f32[6, 2, 3], f32[6], [2], \"valid\", [2], 2"},
    OpDef{
        .name = "aten.conv2d",
        .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
                  "SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
        .infer = conv,
        .onnx = custom(onnx::convolution),
        .executorch = decompose(parts::convolve_by_name),
        .xnnpack = custom(xnnpack::convolution),
        .samples =
            "f32[a, 4, b + 3, 8], f32[6, 4, 3, 2]; f32[a, 4, b + 6, c + 5], f32[6, 2, 3, 3], "
            "f32[6], [2, 1], [1, 0], [2, 1], 2; f32[4, b + 3, 7], f32[6, 4, 3, 3], None, [2], [1]"},
    OpDef{.name = "aten.conv2d.padding",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str "
                    "padding=\"valid\", SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
          .infer = conv_named_padding,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve_by_name),
          .samples = "f32[a, 4, b + 3, 8], f32[6, 4, 3, 2], None, [1, 1], \"same\", [1, 2]; f32[a, "
                     "4, b + 6, c + 5], f32[6, 2, 3, 3], f32[6], [2, 1], \"valid\", [1, 1], 2"},
    OpDef{
        .name = "aten.conv3d",
        .schema =
            "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
            "SymInt[3] padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
        .infer = conv,
        .onnx = custom(onnx::convolution),
        .executorch = decompose(parts::convolve_by_name),
        .samples = "f32[a, 2, b + 3, 8, 5], f32[6, 2, 3, 2, 1]; f32[a, 2, 4, 5, c + 5], f32[6, 1, "
                   "2, 3, 3], f32[6], [2, 1, 2], [1, 0, 1], [1, 1, 2], 2"},
    OpDef{.name = "aten.conv3d.padding",
          .schema =
              "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
              "str padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
          .infer = conv_named_padding,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve_by_name),
          .samples =
              "f32[a, 2, b + 3, 8, 5], f32[6, 2, 3, 2, 1], None, [1, 1, 1], \"same\"; f32[a, 2, 4, "
              "5, c + 5], f32[6, 1, 2, 3, 3], f32[6], [2, 1, 2], \"valid\", [1, 1, 2], 2"},
    OpDef{.name = "aten.conv_tbc",
          .schema = "(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
          .infer = conv_tbc,
          .onnx = custom(onnx::conv_tbc),
          .executorch = decompose(parts::convolve_time_first),
          .samples =
              "f32[a + 2, b, 3], f32[3, 3, 4], f32[4]; f32[a + 2, b, 3], f32[2, 3, 4], f32[4], 1"},
    OpDef{.name = "aten.conv_transpose1d",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], "
                    "SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, "
                    "SymInt[1] dilation=[1]) -> Tensor",
          .infer = conv_transpose,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve_by_name),
          .samples = "f32[a, 4, b], f32[4, 6, 3]; f32[a, 4, b + 1], f32[4, 2, 3], f32[4], [2], "
                     "[1], [1], 2, [2]; f32[4, b], f32[4, 6, 3], f32[6], [2]"},
    OpDef{.name = "aten.conv_transpose2d.input",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
                    "SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, "
                    "SymInt[2] dilation=[1, 1]) -> Tensor",
          .infer = conv_transpose,
          .onnx = custom(onnx::convolution),
          .executorch = decompose(parts::convolve_by_name),
          .samples =
              "f32[a, 4, b, c], f32[4, 6, 3, 2]; f32[a, 4, b + 1, 3], f32[4, 2, 3, 3], f32[4], [2, "
              "3], [1, 0], [1, 2], 2, [2, 1]; f32[4, b, 3], f32[4, 2, 2, 2], None, [2]"},
    OpDef{.name = "aten.conv_transpose3d.input",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
                    "SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt "
                    "groups=1, SymInt[3] dilation=[1, 1, 1]) -> Tensor",
          .infer = conv_transpose,
          .onnx = custom(onnx::convolution),
          .executorch = refuse("the runtime transposes convolutions over two axes at most"),
          .samples = "f32[a, 2, b, c, 3], f32[2, 6, 3, 2, 1]; f32[a, 2, b + 1, 3, 2], f32[2, 2, 3, "
                     "3, 2], f32[4], [2, 3, 1], [1, 0, 1], [1, 2, 0], 2, [2, 1, 1]"},
    OpDef{
        .name = "aten.convolution",
        .schema =
            "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
            "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
        .infer = convolution,
        .onnx = custom(onnx::convolution),
        .xnnpack = custom(xnnpack::convolution),
        .samples = "f32[a, 4, b + 3], f32[6, 4, 3], None, [1], [1], [1], False, [0], 1; f32[a, 4, "
                   "b, 5], f32[4, 2, 3, 3], f32[4], [2, 1], [1, 0], [1, 1], True, [1, 0], 2"},
    // [batch, channels, tokens] behind the columns of a state; the next state has as many.
    OpDef{.name = "modelport.causal_convolution",
          .schema = "(Tensor input, Tensor weight, Tensor state, Tensor? bias=None) -> (Tensor, "
                    "Tensor)",
          .infer = causal_convolution,
          .onnx = custom(onnx::causal_convolution),
          .executorch = refuse("it is for onnxruntime"),
          .samples = "f32[a, 4, b], f32[4, 1, 3], f32[a, 4, 2]; f32[a, 4, b], f32[4, 1, 3], f32[a, "
                     "4, 3], f32[4]"},
};
static_assert(first_bad_row(kConvolutionOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> convolution_ops() { return kConvolutionOps; }

}  // namespace modelport::ops