// Convolutions by name as the general one, which goes over one or two axes.
#include "ops/decompositions/neural.h"
#include "ops/decompositions/pieces.h"
#include "ops/rules/windows.h"

namespace modelport::ops::parts {
namespace {

struct Strides {
  Shape stride, padding, dilation, output_padding;
  bool transposed = false;
  Int groups = 1;
};

Strides strides_of(Emitter& e, std::size_t axes, bool transposed) {
  Call& call = e.call();
  const Shape none(axes, Int(0));
  const Shape ones(axes, Int(1));
  Strides s{per_axis(call, "stride", axes, ones),
            none,
            per_axis(call, "dilation", axes, ones),
            none,
            transposed,
            call.integer("groups")};
  if (call.arg("padding").get<std::string>() == nullptr)
    s.padding = per_axis(call, "padding", axes, none);
  if (schema_of(call.op()).find("output_padding") != nullptr)
    s.output_padding = per_axis(call, "output_padding", axes, none);
  return s;
}

Value general(Emitter& e, Value x, Value weight, const Operand& bias, const Strides& s) {
  return e.call("aten.convolution", {x, weight, bias, s.stride, s.padding, s.dilation, s.transposed,
                                     s.output_padding, s.groups});
}

/// Each layer of the kernel goes over the images that it meets; what they give is summed.
Value layer_by_layer(Emitter& e, Value x, Value weight, const Operand& bias, const Strides& s,
                     const Int& depth) {
  if (s.transposed) e.refuse("the runtime transposes convolutions over two axes at most");
  x = padded(e, x, {0, 0, 0, 0, s.padding[0], s.padding[0]});
  const Shape shape = e.shape(x);
  Strides flat = s;
  for (Shape* part : {&flat.stride, &flat.padding, &flat.dilation, &flat.output_padding})
    part->erase(part->begin());
  const std::int64_t layers = known(e, e.shape(weight)[2], "the kernel must have a fixed size");
  Value sum = kNoValue;
  for (std::int64_t i = 0; i < layers; ++i) {
    const Int start = s.dilation[0] * i;
    const Value met = sliced(e, x, 2, start, start + (depth - 1) * s.stride[0] + 1, s.stride[0]);
    const Value images = viewed(e, permuted(e, met, {0, 2, 1, 3, 4}),
                                {shape[0] * depth, shape[1], shape[3], shape[4]});
    const Value y =
        general(e, images, selected(e, weight, 2, i), i == 0 ? bias : Operand(std::nullopt), flat);
    sum = i == 0 ? y : add(e, sum, y);
  }
  const Shape one = e.shape(sum);
  return permuted(e, viewed(e, sum, {shape[0], depth, one[1], one[2], one[3]}), {0, 2, 1, 3, 4});
}

Value convolved(Emitter& e, Value x, Value weight, const Operand& bias, const Strides& s) {
  const Shape& result = e.result().shape;
  const std::size_t axes = s.stride.size();
  Shape shape = e.shape(x);
  if (shape.size() == axes + 1) shape.insert(shape.begin(), 1);
  x = viewed(e, x, shape);
  if (axes > 3) e.refuse("a convolution over more than three axes");
  const Value y = axes < 3 ? general(e, x, weight, bias, s)
                           : layer_by_layer(e, x, weight, bias, s, result[result.size() - 3]);
  return viewed(e, y, result);
}

}  // namespace

Value convolve(Emitter& e) {
  const std::size_t axes = at(e.rank(e.tensor("weight")) - 2);
  return convolved(e, e.tensor("input"), e.tensor("weight"), e.arg("bias"),
                   strides_of(e, axes, e.call().flag("transposed")));
}

Value convolve_by_name(Emitter& e) {
  Value x = e.tensor("input");
  const Value weight = e.tensor("weight");
  const std::size_t axes = at(e.rank(weight) - 2);
  const bool is_transposed = schema_of(e.call().op()).find("output_padding") != nullptr;
  Strides s = strides_of(e, axes, is_transposed);
  const std::string* padding = e.call().arg("padding").get<std::string>();
  if (padding != nullptr && *padding == "same") {
    Shape pads;
    for (std::size_t i = axes; i-- > 0;) {
      const Int around = s.dilation[i] * (e.shape(weight)[i + 2] - 1);
      const Int before = shape::floor_div(around, 2);
      pads.push_back(before);
      pads.push_back(around - before);
    }
    x = padded(e, x, pads);
  }
  return convolved(e, x, weight, e.arg("bias"), s);
}

Value convolve_time_first(Emitter& e) {
  const Value x = permuted(e, e.tensor("self"), {1, 2, 0});
  const Value weight = permuted(e, e.tensor("weight"), {2, 1, 0});
  const Value y = e.call("aten.conv1d", {x, weight, e.arg("bias"), {1}, {e.arg("pad")}});
  return permuted(e, y, {2, 0, 1});
}

}  // namespace modelport::ops::parts
