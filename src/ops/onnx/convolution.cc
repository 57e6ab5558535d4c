// Convolutions as Conv and ConvTranspose.
#include "ops/onnx/convolution.h"

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"
#include "ops/rules/windows.h"

namespace modelport::ops::onnx {

std::vector<std::int64_t> fixed(Lower& l, const std::vector<Int>& numbers) {
  std::vector<std::int64_t> found;
  for (const Int& number : numbers) {
    if (!number.is_constant())
      l.refuse("kernel, stride, padding and dilation must be known before the program runs");
    found.push_back(*number.constant());
  }
  return found;
}

Dtype window_dtype(Dtype dtype) { return dtype == Dtype::f16 ? dtype : Dtype::f32; }

namespace {

bool is_transposed(Lower& l) {
  if (l.call().op().name.starts_with("aten.conv_transpose")) return true;
  return schema_of(l.call().op()).find("transposed") != nullptr && l.call().flag("transposed");
}

/// All starts before all ends.
std::vector<std::int64_t> pads_of(Lower& l, const std::vector<std::int64_t>& dilation) {
  const std::size_t axes = dilation.size();
  std::vector<std::int64_t> starts, ends;
  if (const auto* name = l.call().arg("padding").get<std::string>()) {
    const Shape& weight = l.call().shape("weight");
    const std::vector<std::int64_t> kernel = fixed(l, Shape(weight.begin() + 2, weight.end()));
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t whole = *name == "same" ? dilation[i] * (kernel[i] - 1) : 0;
      starts.push_back(whole / 2);
      ends.push_back(whole - whole / 2);
    }
  } else {
    starts = ends = fixed(l, per_axis(l.call(), "padding", axes));
  }
  starts.insert(starts.end(), ends.begin(), ends.end());
  return starts;
}

}  // namespace

Values convolution(Lower& l) {
  const Dtype own = l.result().dtype;
  if (is_complex(own)) l.refuse("a convolution of complex numbers");
  const Dtype wide = window_dtype(own);
  const Value weight = l.in("weight", wide);
  const std::size_t axes = l.shape(weight).size() - 2;
  const bool alone = l.call().shape("input").size() == axes + 1;  // without a batch
  Value x = l.in("input", wide);
  if (alone) x = l.unsqueeze(x, {0});
  const bool transposed = is_transposed(l);
  const std::vector<std::int64_t> dilation = fixed(l, per_axis(l.call(), "dilation", axes));
  Attributes attributes{{"strides", int_list(fixed(l, per_axis(l.call(), "stride", axes)))},
                        {"dilations", int_list(dilation)},
                        {"pads", int_list(pads_of(l, dilation))},
                        {"group", {Int(fixed(l, {l.call().integer("groups")})[0])}}};
  if (transposed)
    attributes.push_back(
        {"output_padding", int_list(fixed(l, per_axis(l.call(), "output_padding", axes)))});
  Shape shape = l.result().shape;
  if (alone) shape.insert(shape.begin(), Int(1));
  const Value y = l.emit(transposed ? "ConvTranspose" : "Conv", {x, weight, l.in("bias", wide)},
                         attributes, {wide, std::move(shape)});
  return {l.cast(alone ? l.squeeze(y, {0}) : y, own)};
}

Values conv_tbc(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = window_dtype(own);
  const Shape& shape = l.result().shape;
  const std::int64_t pad = fixed(l, {l.call().integer("pad")})[0];
  const Value y = l.emit("Conv",
                         {l.transpose(l.in("self", wide), {1, 2, 0}),
                          l.transpose(l.in("weight", wide), {2, 1, 0}), l.in("bias", wide)},
                         {{"pads", int_list({pad, pad})}}, {wide, {shape[1], shape[2], shape[0]}});
  return {l.cast(l.transpose(y, {2, 0, 1}), own)};
}

/// The kernel's state has one column less than its weight. Models that carry more columns than they
/// look back on get a weight that begins with zeros, so that their state stays as long as it is.
Values causal_convolution(Lower& l) {
  const Value state = l.in("state");
  Value weight = l.in("weight");
  const Int unseen = l.shape(state)[2] - (l.shape(weight)[2] - 1);
  if (!(unseen == Int(0)))
    weight = bordered(l, weight, {0, 0, unseen}, {0, 0, 0}, l.number(0.0, l.dtype(weight)));
  // Not with the kernel's own SiLU: it takes one number after the other, and for a long prompt two
  // to four times as long as Sigmoid and Mul.
  return l.emit_many("com.microsoft.CausalConvWithState",
                     {l.in("input"), weight, l.in("bias"), state}, {}, {l.result(0), l.result(1)});
}

}  // namespace modelport::ops::onnx
