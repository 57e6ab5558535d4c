// Pools: by windows that ONNX has as attributes, or over windows whose sizes are computed.
#include "ops/onnx/pool.h"

#include <algorithm>
#include <numeric>

#include "ops/onnx/convolution.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/resample.h"
#include "ops/rules/axes.h"
#include "ops/rules/windows.h"

namespace modelport::ops::onnx {
namespace {

/// The operand as [batch, channels, ...], whatever axes it came with.
struct Batched {
  Value value;
  bool added = false;
};

Batched batched(Lower& l, std::size_t axes, Dtype dtype) {
  const Value x = l.in("self", dtype);
  const bool alone = l.shape(x).size() == axes + 1;
  return {alone ? l.unsqueeze(x, {0}) : x, alone};
}

Shape batched_shape(Shape shape, bool added) {
  if (added) shape.insert(shape.begin(), Int(1));
  return shape;
}

struct Windows {
  std::vector<std::int64_t> kernel, stride, padding;
};

Windows windows_of(Lower& l, std::size_t axes) {
  const std::vector<Int> kernel = per_axis(l.call(), "kernel_size", axes);
  return {fixed(l, kernel), fixed(l, per_axis(l.call(), "stride", axes, kernel)),
          fixed(l, per_axis(l.call(), "padding", axes))};
}

Attributes attributes_of(Lower& l, const Windows& w) {
  std::vector<std::int64_t> pads = w.padding;
  pads.insert(pads.end(), w.padding.begin(), w.padding.end());
  return {{"kernel_shape", int_list(w.kernel)},
          {"strides", int_list(w.stride)},
          {"pads", int_list(pads)},
          {"ceil_mode", {Int(l.call().flag("ceil_mode") ? 1 : 0)}}};
}

/// MaxPool has floats and bytes.
Dtype max_dtype(Dtype dtype) {
  if (dtype == Dtype::f64 || dtype == Dtype::f16 || dtype == Dtype::i8 || dtype == Dtype::u8)
    return dtype;
  return dtype == Dtype::i64 || dtype == Dtype::i32 ? Dtype::f64 : Dtype::f32;
}

/// onnxruntime merges a Pad into the MaxPool that follows it, whose border counts as minus infinity
/// instead of what was padded with; not one that names its axes.
Value kept_apart(Lower& l, Value x) {
  const ir::Value& value = l.graph().value(x);
  if (l.opset() < 18 || value.origin != ir::Origin::node) return x;
  const ir::Node& pad = l.graph().node(value.producer);
  if (pad.op != "onnx.Pad") return x;
  const ir::ArgList inputs = *pad.find("inputs")->get<ir::ArgList>();
  if (inputs.size() != 3 || pad.find("mode") != nullptr) return x;
  std::vector<std::int64_t> axes(l.shape(x).size());
  std::iota(axes.begin(), axes.end(), 0);
  return l.emit(
      "Pad",
      {*inputs[0].get<Value>(), *inputs[1].get<Value>(), *inputs[2].get<Value>(), l.ints(axes)}, {},
      l.type(x));
}

Values pooled_most(Lower& l, Batched x, const Attributes& attributes, std::size_t axes) {
  x.value = kept_apart(l, x.value);
  const Shape shape = batched_shape(l.result().shape, x.added);
  const ir::TensorType type{l.dtype(x.value), shape};
  const auto finished = [&](Value y, Dtype dtype) {
    return l.cast(x.added ? l.squeeze(y, {0}) : y, dtype);
  };
  if (l.result_count() == 1)
    return {finished(l.emit("MaxPool", {x.value}, attributes, type), l.result().dtype)};
  const Values found = l.emit_many("MaxPool", {x.value}, attributes, {type, {Dtype::i64, shape}});
  // ONNX counts through the whole tensor, torch through each plane.
  const Shape& whole = l.shape(x.value);
  const Int plane = numel(Shape(whole.end() - static_cast<std::ptrdiff_t>(axes), whole.end()));
  return {finished(found[0], l.result().dtype),
          finished(l.binary("Mod", found[1], l.size(plane)), Dtype::i64)};
}

}  // namespace

Values max_pool(Lower& l) {
  const std::size_t axes = spatial_axes(l.call());
  Attributes attributes = attributes_of(l, windows_of(l, axes));
  attributes.push_back({"dilations", int_list(fixed(l, per_axis(l.call(), "dilation", axes)))});
  return pooled_most(l, batched(l, axes, max_dtype(l.result().dtype)), attributes, axes);
}

Values avg_pool(Lower& l) {
  const std::size_t axes = spatial_axes(l.call());
  const Windows w = windows_of(l, axes);
  const Batched x = batched(l, axes, Dtype::f32);
  const ir::TensorType type{Dtype::f32, batched_shape(l.result().shape, x.added)};
  const bool can_divide = schema_of(l.call().op()).find("divisor_override") != nullptr;
  Value y;
  if (can_divide && l.has("divisor_override")) {
    // Sums over whole windows: the borders are zeros, those that rounding up adds too.
    Shape starts{0, 0}, ends{0, 0};
    std::int64_t count = 1;
    for (std::size_t i = 0; i < axes; ++i) {
      const Int& size = l.shape(x.value)[2 + i];
      starts.push_back(w.padding[i]);
      ends.push_back((type.shape[2 + i] - 1) * w.stride[i] + w.kernel[i] - size - w.padding[i]);
      count *= w.kernel[i];
    }
    const Value wide = bordered(l, x.value, starts, ends, l.number(0.0, Dtype::f32));
    y = l.emit("AveragePool", {wide},
               {{"kernel_shape", int_list(w.kernel)}, {"strides", int_list(w.stride)}}, type);
    const double factor = static_cast<double>(count) / l.real_number("divisor_override");
    y = l.mul(y, l.number(factor, Dtype::f32));
  } else {
    Attributes attributes = attributes_of(l, w);
    attributes.push_back({"count_include_pad", {Int(l.call().flag("count_include_pad") ? 1 : 0)}});
    y = l.emit("AveragePool", {x.value}, attributes, type);
  }
  return {l.cast(x.added ? l.squeeze(y, {0}) : y, l.result().dtype)};
}

namespace {

/// The width of windows that are all alike and do not overlap, where the sizes say so.
std::optional<std::vector<std::int64_t>> even_windows(Lower& l, const Shape& shape,
                                                      std::size_t axes) {
  const Shape& result = l.result().shape;
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < axes; ++i) {
    const Int& in = shape[shape.size() - axes + i];
    const Int& out = result[result.size() - axes + i];
    const auto quotient = in == out ? std::optional<Int>(1) : shape::exact_quotient(in, out);
    if (!quotient || !quotient->is_constant() || *quotient->constant() < 1) return std::nullopt;
    widths.push_back(*quotient->constant());
  }
  return widths;
}

/// Where window i of `out` begins and ends: floor(i*in/out) and ceil((i + 1)*in/out).
struct Bounds {
  Value start, end;  // i64[out, 1]
};

Bounds bounds_of(Lower& l, const Int& in, const Int& out) {
  const Value first = l.mul(l.range(out), l.size(in));
  const Value last = l.add(first, l.size(in + out - 1));
  return {l.unsqueeze(l.div(first, l.size(out)), {1}), l.unsqueeze(l.div(last, l.size(out)), {1})};
}

Value averaging_matrix(Lower& l, const Int& in, const Int& out, Dtype dtype) {
  const Bounds bounds = bounds_of(l, in, out);
  const Value place = l.range(in);
  const Value inside = l.emit(
      "And",
      {l.compare("GreaterOrEqual", place, bounds.start), l.compare("Less", place, bounds.end)}, {},
      {Dtype::boolean, {out, in}});
  return l.div(l.cast(inside, dtype), l.cast(l.sub(bounds.end, bounds.start), dtype));
}

}  // namespace

Values adaptive_avg_pool(Lower& l) {
  const std::size_t axes = spatial_axes(l.call());
  const Dtype own = l.result().dtype;
  const Dtype wide = own == Dtype::f64 ? own : Dtype::f32;
  Value x = l.in("self", wide);
  const Shape& shape = l.shape(x);
  const Shape& result = l.result().shape;
  const auto first = static_cast<std::int64_t>(shape.size() - axes);
  std::vector<std::int64_t> all(axes);
  std::iota(all.begin(), all.end(), first);
  const auto is_one = [](const Int& size) { return size == Int(1); };
  if (std::all_of(result.begin() + first, result.end(), is_one))
    return {l.cast(l.reduce("ReduceMean", x, all, true), own)};
  if (const auto widths = even_windows(l, shape, axes); widths && wide == Dtype::f32) {
    const Batched input = batched(l, axes, wide);
    const Value y = l.emit("AveragePool", {input.value},
                           {{"kernel_shape", int_list(*widths)}, {"strides", int_list(*widths)}},
                           {wide, batched_shape(result, input.added)});
    return {l.cast(input.added ? l.squeeze(y, {0}) : y, own)};
  }
  for (const std::int64_t axis : all) {
    const Int& in = shape[at(axis)];
    const Int& out = result[at(axis)];
    if (in == out) continue;
    x = is_one(out) ? l.reduce("ReduceMean", x, {axis}, true)
                    : times_along(l, averaging_matrix(l, in, out, wide), x, axis);
  }
  return {l.cast(x, own)};
}

namespace {

/// The elements of all windows side by side: [..., windows of each axis, elements of a window], and
/// for each the place in its plane.
struct Gathered {
  Value elements, places;
};

Gathered gather_windows(Lower& l, Value x, std::size_t axes) {
  const Shape shape = l.shape(x);
  const Shape& result = l.result().shape;
  const std::size_t first = shape.size() - axes;
  Value places = kNoValue;  // [out1, width1, out2, width2, ...]
  Shape widths;
  for (std::size_t i = 0; i < axes; ++i) {
    const Int& in = shape[first + i];
    const Int& out = result[first + i];
    widths.push_back(shape::ceil_div(in, out) + 1);
    const Bounds bounds = bounds_of(l, in, out);
    const Value last = l.sub(bounds.end, l.ints({1}));
    const Value index = l.binary("Min", l.add(bounds.start, l.range(widths.back())), last);
    x = l.gather(x, index, static_cast<std::int64_t>(first + 2 * i));
    if (places != kNoValue)
      places = l.mul(l.unsqueeze(places, {2 * static_cast<std::int64_t>(i),
                                          2 * static_cast<std::int64_t>(i) + 1}),
                     l.size(in));
    places = places == kNoValue ? index : l.add(places, index);
  }
  // Windows first, then what is in them.
  std::vector<std::int64_t> order;
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::size_t i = 0; i < axes; ++i) order.push_back(static_cast<std::int64_t>(2 * i + k));
  }
  std::vector<std::int64_t> whole(first);
  std::iota(whole.begin(), whole.end(), 0);
  for (const std::int64_t axis : order) whole.push_back(axis + static_cast<std::int64_t>(first));
  const Shape outs(result.begin() + static_cast<std::ptrdiff_t>(first), result.end());
  return {l.reshape(l.transpose(x, whole), joined(result, {numel(widths)})),
          l.reshape(l.transpose(places, order), joined(outs, {numel(widths)}))};
}

}  // namespace

Values adaptive_max_pool(Lower& l) {
  const std::size_t axes = spatial_axes(l.call());
  const Dtype own = l.result().dtype;
  if (const auto widths = even_windows(l, l.call().shape("self"), axes))
    return pooled_most(l, batched(l, axes, max_dtype(own)),
                       {{"kernel_shape", int_list(*widths)}, {"strides", int_list(*widths)}}, axes);
  const Dtype wide = max_dtype(own);
  const Gathered found = gather_windows(l, l.in("self", wide), axes);
  const std::int64_t last = l.rank(found.elements) - 1;
  const Value most = l.reduce("ReduceMax", found.elements, {last}, false);
  const Value which =
      l.emit("ArgMax", {found.elements}, {{"axis", {Int(-1)}}, {"keepdims", {Int(1)}}},
             {Dtype::i64, joined(l.result().shape, {1})});
  const Value places = l.expand(found.places, l.shape(found.elements));
  return {l.cast(most, own), l.squeeze(gather_elements(l, places, which, last), {last})};
}

Values max_unpool(Lower& l) {
  const Value x = l.in("self");
  const Shape& result = l.result().shape;
  const auto planes = leading(result, static_cast<std::int64_t>(result.size()) - 2);
  const Int given = numel(from(l.shape(x), l.rank(x) - 2));
  const Int plane = numel(from(result, static_cast<std::int64_t>(result.size()) - 2));
  const Value empty = l.filled(l.number(0.0, l.dtype(x)), joined(planes, {plane}));
  const Shape flat = joined(planes, {given});
  const Value y = scatter_elements(l, empty, l.reshape(l.in("indices", Dtype::i64), flat),
                                   l.reshape(x, flat), static_cast<std::int64_t>(planes.size()));
  return {l.reshape(y, result)};
}

}  // namespace modelport::ops::onnx
