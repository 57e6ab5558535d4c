// Normalizations: ONNX's own operators where onnxruntime has them in the type, and statistics
// beside them where a row gives those too.
#include "ops/onnx/normalize.h"

#include <limits>

#include "ops/onnx/distance.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/axes.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Value along_axis(Lower& l, std::string_view op) {
  const Dtype wide = working_dtype(l.result().dtype);
  Value x = l.in("self", wide);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const bool single = l.rank(x) == 0;
  if (single) x = l.unsqueeze(x, {0});
  const Value y = l.emit(op, {x}, {{"axis", {Int(axis)}}}, l.type(x));
  return single ? l.squeeze(y, {0}) : y;
}

/// The input and its weights in one type: half-precision input beside f32 weights is normalized in
/// f32.
Dtype common_dtype(Lower& l) {
  const Dtype own = l.call().dtype_of("input");
  return working_dtype(l.has("weight") ? promote(own, l.call().dtype_of("weight")) : own);
}

Value filled_vector(Lower& l, double value, const Int& size, Dtype dtype) {
  if (const auto count = size.constant())
    return l.constant(dtype, {*count},
                      std::vector<double>(static_cast<std::size_t>(*count), value));
  return l.filled(l.number(value, dtype), {size});
}

struct Statistics {
  Value mean, reciprocal;  // 1 / sqrt(variance + eps)
};

Statistics statistics(Lower& l, Value x, const std::vector<std::int64_t>& axes, double eps) {
  const Value mean = l.reduce("ReduceMean", x, axes, true);
  const Value apart = l.sub(x, mean);
  const Value variance = l.reduce("ReduceMean", l.mul(apart, apart), axes, true);
  const Value deviation = l.unary("Sqrt", l.add(variance, l.number(eps, l.dtype(x))));
  return {mean, l.unary("Reciprocal", deviation)};
}

/// x * weight + bias, both of them along axis 1.
Value scaled(Lower& l, Value y) {
  std::vector<std::int64_t> after;
  for (std::int64_t i = 2; i < l.rank(y); ++i) after.push_back(i - 1);
  if (l.has("weight")) y = l.mul(y, l.unsqueeze(l.in("weight", l.dtype(y)), after));
  if (l.has("bias")) y = l.add(y, l.unsqueeze(l.in("bias", l.dtype(y)), after));
  return y;
}

std::vector<std::int64_t> last_axes(std::int64_t rank, std::size_t count) {
  std::vector<std::int64_t> axes;
  for (auto axis = rank - static_cast<std::int64_t>(count); axis < rank; ++axis)
    axes.push_back(axis);
  return axes;
}

/// A weight that is left out: ones.
Value ones_for(Lower& l, const std::vector<Int>& sizes, Dtype dtype) {
  constexpr std::int64_t kMost = 4096;
  const auto count = numel(sizes).constant();
  std::vector<std::int64_t> shape(sizes.size(), 1);  // broadcasts
  if (count && *count <= kMost) {
    for (std::size_t i = 0; i < sizes.size(); ++i) shape[i] = *sizes[i].constant();
  }
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return l.constant(dtype, shape, std::vector<double>(static_cast<std::size_t>(elements), 1));
}

}  // namespace

Values softmax(Lower& l) { return {l.cast(along_axis(l, "Softmax"), l.result().dtype)}; }
Values log_softmax(Lower& l) { return {l.cast(along_axis(l, "LogSoftmax"), l.result().dtype)}; }

Values safe_softmax(Lower& l) {
  const Value y = along_axis(l, "Softmax");
  const Value x = l.in("self", l.dtype(y));
  if (l.rank(x) == 0) return {l.cast(y, l.result().dtype)};
  const Value best = l.reduce("ReduceMax", x, {l.axis("dim", l.rank(x))}, true);
  const Value none = l.number(-std::numeric_limits<double>::infinity(), l.dtype(y));
  const Value hidden = l.compare("Equal", best, none);
  return {l.cast(l.where(hidden, l.number(0.0, l.dtype(y)), y), l.result().dtype)};
}

Values layer_norm(Lower& l) {
  const Dtype wide = common_dtype(l);
  const Value x = l.in("input", wide);
  const std::vector<Int> sizes = l.call().ints("normalized_shape");
  const double eps = l.real_number("eps");
  const Value weight = l.has("weight") ? l.in("weight", wide) : ones_for(l, sizes, wide);
  const Value y = l.emit(
      "LayerNormalization", {x, weight, l.in("bias", wide)},
      {{"axis", {Int(-static_cast<std::int64_t>(sizes.size()))}}, {"epsilon", {eps}}}, l.type(x));
  Values results{l.cast(y, l.result().dtype)};
  if (l.result_count() == 1) return results;
  const Statistics found = statistics(l, x, last_axes(l.rank(x), sizes.size()), eps);
  results.push_back(l.cast(found.mean, l.result(1).dtype));
  results.push_back(l.cast(found.reciprocal, l.result(2).dtype));
  return results;
}

namespace {

/// Sums of half-precision numbers are kept in f32, and so is torch's default for eps.
double smallest_step(Dtype dtype) {
  return dtype == Dtype::f64 ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

}  // namespace

Values rms_norm(Lower& l) {
  const Dtype own = l.call().dtype_of("input");
  const Dtype common = common_dtype(l);
  const std::vector<Int> sizes = l.call().ints("normalized_shape");
  const double eps = l.has("eps") ? l.real_number("eps") : smallest_step(own);
  const bool alone = l.result_count() == 1;
  const bool one_node = l.opset() >= 23 || l.for_onnxruntime();
  if (one_node && alone) {
    const Value x = l.in("input", common);
    const Value weight = l.has("weight") ? l.in("weight", common) : ones_for(l, sizes, common);
    const Value y = l.emit(
        l.for_onnxruntime() ? "SimplifiedLayerNormalization" : "RMSNormalization", {x, weight},
        {{"axis", {Int(-static_cast<std::int64_t>(sizes.size()))}}, {"epsilon", {eps}}}, l.type(x));
    return {l.cast(y, own)};
  }
  const Dtype wide = common == Dtype::f16 ? Dtype::f32 : common;
  const Value x = l.in("input", wide);
  const Value mean = l.reduce("ReduceMean", l.mul(x, x), last_axes(l.rank(x), sizes.size()), true);
  const Value root = l.unary("Sqrt", l.add(mean, l.number(eps, wide)));
  Value y = l.div(x, root);
  if (l.has("weight")) y = l.mul(y, l.in("weight", wide));
  Values results{l.cast(y, own)};
  if (!alone) results.push_back(l.cast(l.unary("Reciprocal", root), l.result(1).dtype));
  return results;
}

Values group_norm(Lower& l) {
  const bool alone = l.result_count() == 1;
  const Dtype wide = common_dtype(l);
  const Value x = l.in("input", wide);
  const Shape& shape = l.shape(x);
  const Int groups = l.call().integer(alone ? "num_groups" : "group");
  const double eps = l.real_number("eps");
  Int each = shape::floor_div(shape[1], groups);
  for (std::size_t i = 2; i < shape.size(); ++i) each *= shape[i];
  const Value grouped = l.reshape(x, {shape[0], groups, each});
  // A kernel of its own, and in onnxruntime twice as fast as GroupNormalization, which is none.
  const bool direct = shape[1] == groups && shape.size() >= 3 && wide != Dtype::f64 &&
                      l.has("weight") && l.has("bias");
  Value y;
  if (direct) {
    y = l.emit("InstanceNormalization", {x, l.in("weight", wide), l.in("bias", wide)},
               {{"epsilon", {eps}}}, l.type(x));
  } else {
    if (wide == Dtype::f64) {
      y = l.emit("LayerNormalization", {grouped, l.constant(wide, {1}, {1})},
                 {{"axis", {Int(-1)}}, {"epsilon", {eps}}}, l.type(grouped));
    } else {
      y = l.emit("InstanceNormalization",
                 {grouped, filled_vector(l, 1, groups, wide), filled_vector(l, 0, groups, wide)},
                 {{"epsilon", {eps}}}, l.type(grouped));
    }
    y = scaled(l, l.reshape(y, shape));
  }
  Values results{l.cast(y, l.result().dtype)};
  if (alone) return results;
  const Statistics found = statistics(l, grouped, {2}, eps);
  results.push_back(l.cast(l.squeeze(found.mean, {2}), l.result(1).dtype));
  results.push_back(l.cast(l.squeeze(found.reciprocal, {2}), l.result(2).dtype));
  return results;
}

namespace {

Value by_running_statistics(Lower& l, Dtype wide) {
  const Value x = l.in("input", wide);
  const Int& channels = l.shape(x)[1];
  const Value weight = l.has("weight") ? l.in("weight", wide) : filled_vector(l, 1, channels, wide);
  const Value bias = l.has("bias") ? l.in("bias", wide) : filled_vector(l, 0, channels, wide);
  return l.emit("BatchNormalization",
                {x, weight, bias, l.in("running_mean", wide), l.in("running_var", wide)},
                {{"epsilon", {l.real_number("eps")}}}, l.type(x));
}

}  // namespace

Values batch_norm(Lower& l) {
  const Dtype wide = common_dtype(l);
  const Dtype own = l.result().dtype;
  const bool can_train = schema_of(l.call().op()).find("training") != nullptr;
  if (!can_train || !l.call().flag("training")) {
    Values results{l.cast(by_running_statistics(l, wide), own)};
    for (std::size_t i = 1; i < l.result_count(); ++i)
      results.push_back(l.constant(l.result(i).dtype, {0}, {}));
    return results;
  }
  const Value x = l.in("input", wide);
  std::vector<std::int64_t> axes{0};
  for (std::int64_t i = 2; i < l.rank(x); ++i) axes.push_back(i);
  const Statistics found = statistics(l, x, axes, l.real_number("eps"));
  const Value y = scaled(l, l.mul(l.sub(x, found.mean), found.reciprocal));
  Values results{l.cast(y, own)};
  if (l.result_count() == 1) return results;
  results.push_back(l.cast(l.squeeze(found.mean, axes), l.result(1).dtype));
  results.push_back(l.cast(l.squeeze(found.reciprocal, axes), l.result(2).dtype));
  return results;
}

Values instance_norm(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = common_dtype(l);
  if (!l.call().flag("use_input_stats")) return {l.cast(by_running_statistics(l, wide), own)};
  const Dtype kernel = wide == Dtype::f64 ? Dtype::f32 : wide;
  const Value x = l.in("input", kernel);
  const Int& channels = l.shape(x)[1];
  const Value weight =
      l.has("weight") ? l.in("weight", kernel) : filled_vector(l, 1, channels, kernel);
  const Value bias = l.has("bias") ? l.in("bias", kernel) : filled_vector(l, 0, channels, kernel);
  return {l.cast(l.emit("InstanceNormalization", {x, weight, bias},
                        {{"epsilon", {l.real_number("eps")}}}, l.type(x)),
                 own)};
}

Values renorm(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value x = l.in("self", wide);
  const std::int64_t kept = l.axis("dim", l.rank(x));
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < l.rank(x); ++i) {
    if (i != kept) axes.push_back(i);
  }
  const Value most = l.number(l.real_number("maxnorm"), wide);
  const Value norm = vector_norm(l, x, l.real_number("p"), axes, true);
  constexpr double kEps = 1e-7;  // torch's own
  const Value factor = l.where(l.compare("Greater", norm, most),
                               l.div(most, l.add(norm, l.number(kEps, wide))), l.number(1.0, wide));
  return {l.cast(l.mul(x, factor), own)};
}

Values weight_norm(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value v = l.in("v", wide);
  const std::int64_t kept = l.call().number("dim");  // -1: none
  std::vector<std::int64_t> axes;
  for (std::int64_t i = 0; i < l.rank(v); ++i) {
    if (i != kept) axes.push_back(i);
  }
  const Value norm = l.reduce("ReduceL2", v, axes, true);
  return {l.cast(l.mul(v, l.div(l.in("g", wide), norm)), own)};
}

}  // namespace modelport::ops::onnx
