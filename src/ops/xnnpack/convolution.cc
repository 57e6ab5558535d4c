// Convolutions and pooling over images [batch, channels, height, width], channels last inside.
#include <algorithm>

#include "ops/rules/axes.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops::xnnpack {
namespace {

constexpr std::string_view kNotAnImage = "not an image of f32";
const Axes kChannelsLast{0, 2, 3, 1};
const Axes kChannelsFirst{0, 3, 1, 2};

bool is_image(Lower& l, Value x) { return l.takes(x) && l.rank(x) == 4; }

/// Two plain numbers, of a list of one or two; empty where they are computed.
std::vector<std::int64_t> pair(Lower& l, std::string_view name, std::int64_t otherwise) {
  std::vector<std::int64_t> numbers;
  for (const Int& one : l.call().ints(name)) {
    if (!one.constant()) return {};
    numbers.push_back(*one.constant());
  }
  if (numbers.empty()) numbers.assign(2, otherwise);
  if (numbers.size() == 1) numbers.push_back(numbers[0]);
  return numbers;
}

Shape channels_last(const Shape& shape) { return {shape[0], shape[2], shape[3], shape[1]}; }

struct Window {
  std::vector<std::int64_t> stride, padding, dilation;
  bool is_known() const { return !stride.empty() && !padding.empty() && !dilation.empty(); }
};

/// The arguments of a window; `rows` and `columns` in the order of the node's fields.
std::vector<ir::NamedArg> fields(Value x, const Window& window) {
  return {{"input", {x}},
          {"padding", emit::int_list(window.padding)},
          {"stride", emit::int_list(window.stride)},
          {"dilation", emit::int_list(window.dilation)}};
}

/// A convolution of images; x and the result have the channels first.
Value convolved(Lower& l, Value x, const Window& window, std::int64_t groups, const Shape& result) {
  const Value weight = l.tensor("weight");
  const bool depthwise = groups > 1 && l.shape(weight)[1] == Int(1) && l.shape(x)[1] == Int(groups);
  std::vector<ir::NamedArg> args = fields(l.transposed(x, kChannelsLast), window);
  args.push_back({"filter", {weight}});
  args.push_back({"groups", {Int(groups)}});
  if (l.has("bias")) args.push_back({"bias", {l.tensor("bias")}});
  const Value y = l.node(depthwise ? "DepthwiseConv2d" : "Conv2d", std::move(args),
                         {Dtype::f32, channels_last(result)});
  return l.transposed(y, kChannelsFirst);
}

std::string_view why_no_convolution(Lower& l) {
  const Value x = l.tensor("input"), weight = l.tensor("weight"), bias = l.tensor("bias");
  if (!l.takes(x) || !l.takes(weight) || l.rank(x) != l.rank(weight)) return kNotAnImage;
  if (l.rank(x) != 4 && l.rank(x) != 3) return "not over one or two axes";
  if (!l.is_weight(weight) || (bias != kNoValue && !l.is_weight(bias)))
    return "a filter that is no weight";
  if (schema_of(l.call().op()).find("transposed") != nullptr && l.call().flag("transposed"))
    return "a transposed convolution";
  if (l.call().arg("padding").get<std::string>() != nullptr) return "padding by name";
  return {};
}

}  // namespace

Values convolution(Lower& l) {
  if (const std::string_view why = why_no_convolution(l); !why.empty()) return l.leave(why);
  Window window{pair(l, "stride", 1), pair(l, "padding", 0), pair(l, "dilation", 1)};
  const std::optional<std::int64_t> groups = l.call().integer("groups").constant();
  if (!window.is_known() || !groups) return l.leave("a window that is known only when it runs");
  const Value x = l.tensor("input");
  if (l.rank(x) == 4) return {convolved(l, x, window, *groups, l.result().shape)};
  // Over one axis: the images have one row.
  window.padding[0] = 0;
  window.stride[0] = window.dilation[0] = 1;
  const Shape& flat = l.result().shape;
  const Value y = convolved(l, l.call("aten.unsqueeze", {x, 2}), window, *groups,
                            {flat[0], flat[1], 1, flat[2]});
  return {l.call("aten.squeeze.dim", {y, 2})};
}

Values max_pool2d(Lower& l) {
  const Value x = l.tensor("self");
  if (!is_image(l, x)) return l.leave(kNotAnImage);
  const std::vector<std::int64_t> size = pair(l, "kernel_size", 1);
  Window window{l.call().ints("stride").empty() ? size : pair(l, "stride", 1),
                pair(l, "padding", 0), pair(l, "dilation", 1)};
  if (!window.is_known() || size.empty() || l.call().flag("ceil_mode") || size[0] * size[1] == 1)
    return l.leave("a window of one element, one that is computed, or sizes rounded up");
  std::vector<ir::NamedArg> args = fields(l.transposed(x, kChannelsLast), window);
  args.push_back({"size", emit::int_list(size)});
  const Value y =
      l.node("MaxPooling2d", std::move(args), {Dtype::f32, channels_last(l.result().shape)});
  return {l.transposed(y, kChannelsFirst)};
}

Values avg_pool2d(Lower& l) {
  const Value x = l.tensor("self");
  if (!is_image(l, x)) return l.leave(kNotAnImage);
  const std::vector<std::int64_t> size = pair(l, "kernel_size", 1);
  Window window{
      l.call().ints("stride").empty() ? size : pair(l, "stride", 1), pair(l, "padding", 0), {1, 1}};
  if (!window.is_known() || size.empty() || size[0] * size[1] == 1 || l.call().flag("ceil_mode") ||
      l.has("divisor_override"))
    return l.leave("a window of one element, one that is computed, or another divisor");
  if (window.padding != std::vector<std::int64_t>{0, 0} && l.call().flag("count_include_pad"))
    return l.leave("padding that counts");
  std::vector<ir::NamedArg> args = fields(l.transposed(x, kChannelsLast), window);
  args.push_back({"size", emit::int_list(size)});
  const Value y =
      l.node("AvgPooling2d", std::move(args), {Dtype::f32, channels_last(l.result().shape)});
  return {l.transposed(y, kChannelsFirst)};
}

Values adaptive_avg_pool2d(Lower& l) {
  const Value x = l.tensor("self");
  const std::vector<Int> size = l.call().ints("output_size");
  if (!is_image(l, x) || !std::ranges::all_of(size, [](const Int& n) { return n == Int(1); }))
    return l.leave("not the mean of an image of f32");
  const Value y = l.node("GlobalAvgPooling2d", {{"input", {l.transposed(x, kChannelsLast)}}},
                         {Dtype::f32, channels_last(l.result().shape)});
  return {l.transposed(y, kChannelsFirst)};
}

Values upsample_bilinear2d(Lower& l) {
  const bool is_vec = schema_of(l.call().op()).find("self") == nullptr;
  const Value x = l.tensor(is_vec ? "input" : "self");
  const Shape& result = l.result().shape;
  if (!is_image(l, x)) return l.leave(kNotAnImage);
  if (!result[2].constant() || !result[3].constant())
    return l.leave("the size of the result is known only when it runs");
  if (!is_vec || l.has("scale_factors")) return l.leave("factors instead of sizes");
  const Value y = l.node("StaticResizeBilinear2D",
                         {{"input", {l.transposed(x, kChannelsLast)}},
                          {"size", emit::int_list({*result[2].constant(), *result[3].constant()})},
                          {"align_corners", {l.call().flag("align_corners")}}},
                         {Dtype::f32, channels_last(result)});
  return {l.transposed(y, kChannelsFirst)};
}

}  // namespace modelport::ops::xnnpack
