// Reductions and norms. There is no node that sums: a sum of the last axis is a product with ones.
#include <limits>

#include "ops/rules/axes.h"
#include "ops/xnnpack/neural.h"

namespace modelport::ops::xnnpack {
namespace {

constexpr std::string_view kNotReal = "not f32 with one to six axes";
constexpr std::string_view kUnknownLength = "the length of a row is known only when it runs";

const Axes kChannelsLast{0, 2, 3, 1};
const Axes kChannelsFirst{0, 3, 1, 2};

/// The axis after all others.
Axes moved_last(std::int64_t rank, std::int64_t axis) {
  Axes order;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != axis) order.push_back(i);
  }
  order.push_back(axis);
  return order;
}

/// And back.
Axes moved_back(std::int64_t rank, std::int64_t axis) {
  Axes order;
  for (std::int64_t i = 0; i < rank; ++i)
    order.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  return order;
}

Values reduced(Lower& l, bool is_mean) {
  const Value x = l.tensor("self");
  if (!l.takes(x) || !l.takes_result() || l.rank(x) < 2) return l.leave(kNotReal);
  if (l.has("dtype") && l.call().dtype("dtype") != Dtype::f32) return l.leave(kNotReal);
  const Axes axes = axis_list(l.call(), "dim", l.rank(x));
  const bool is_image = l.rank(x) == 4 && (axes == Axes{2, 3} || axes == Axes{3, 2});
  if (is_image && is_mean) {
    const Value pooled = l.node("GlobalAvgPooling2d", {{"input", {l.transposed(x, kChannelsLast)}}},
                                {Dtype::f32, {l.shape(x)[0], 1, 1, l.shape(x)[1]}});
    const Value y = l.call().flag("keepdim") ? l.transposed(pooled, kChannelsFirst)
                                             : l.reshaped(pooled, l.result().shape);
    return y == kNoValue ? l.leave(kUnknownLength) : Values{y};
  }
  if (axes.size() != 1) return l.leave("a sum over other axes than one");
  const std::optional<std::int64_t> length =
      l.shape(x)[static_cast<std::size_t>(axes[0])].constant();
  if (!length || *length == 0) return l.leave(kUnknownLength);
  const double factor = is_mean ? 1.0 / static_cast<double>(*length) : 1.0;
  const Value y = l.row_sum(l.transposed(x, moved_last(l.rank(x), axes[0])), factor);
  if (l.call().flag("keepdim")) return {l.transposed(y, moved_back(l.rank(x), axes[0]))};
  const Value flat = l.reshaped(y, l.result().shape);
  return flat == kNoValue ? l.leave("more than one size is known only when it runs") : Values{flat};
}

/// The length of the one axis that a norm is over; 0 where XNNPACK has no way.
std::int64_t row_length(Lower& l) {
  const Value x = l.tensor("input");
  if (!l.takes(x) || l.rank(x) < 2 || l.call().ints("normalized_shape").size() != 1) return 0;
  return l.shape(x).back().constant().value_or(0);
}

/// x / sqrt(mean(x^2) + eps), then weight and bias where they are given.
Value normalized(Lower& l, Value x, double length, double eps) {
  const Value mean = l.row_sum(l.unary("Square", x), 1 / length);
  const Value root = l.unary("ReciprocalSquareRoot", l.binary("Add", mean, l.real(eps)));
  Value y = l.binary("Multiply", x, root);
  if (l.has("weight")) y = l.binary("Multiply", y, l.tensor("weight"));
  const bool has_bias = schema_of(l.call().op()).find("bias") != nullptr && l.has("bias");
  return has_bias ? l.binary("Add", y, l.tensor("bias")) : y;
}

bool takes_if_given(Lower& l, std::string_view name) {
  return schema_of(l.call().op()).find(name) == nullptr || !l.has(name) || l.takes(l.tensor(name));
}

/// Whether every tensor of the call but its input is a weight, or missing.
bool has_weights_only(Lower& l) {
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    if (l.has(name) && !l.is_weight(l.tensor(name))) return false;
  }
  return true;
}

/// The convolution that gives these images with the norm in its filter and bias, or kNoValue. Where
/// somebody else reads what it gave before, both are computed.
Value folded_into_convolution(Lower& l, Value images) {
  const ir::Value& value = l.graph().value(images);
  if (value.origin != ir::Origin::node || !has_weights_only(l)) return kNoValue;
  const ir::Node before = l.graph().node(value.producer);
  if (before.op != "xnn.Conv2d" && before.op != "xnn.DepthwiseConv2d") return kNoValue;
  const Value filter = *before.find("filter")->get<Value>();
  if (!l.is_weight(filter)) return kNoValue;
  const ir::Arg* bias = before.find("bias");
  const Values made =
      l.written_out("et.fold_norm",
                    {{"weight", {filter}},
                     {"bias", bias == nullptr ? ir::Arg{} : *bias},
                     {"mean", l.call().arg("running_mean")},
                     {"variance", l.call().arg("running_var")},
                     {"scale", l.call().arg("weight")},
                     {"shift", l.call().arg("bias")},
                     {"eps", {l.real_number("eps")}}},
                    {l.type(filter), ir::TensorType{Dtype::f32, {l.shape(filter)[0]}}});
  std::vector<ir::NamedArg> args;
  for (const ir::NamedArg& named : before.args) {
    if (named.name != "filter" && named.name != "bias") args.push_back(named);
  }
  args.push_back({"filter", {made[0]}});
  args.push_back({"bias", {made[1]}});
  return l.node(before.op.substr(4), std::move(args), l.type(images));
}

}  // namespace

Values mean(Lower& l) { return reduced(l, true); }
Values sum(Lower& l) { return reduced(l, false); }

Values softmax(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes(x) || !l.takes_result()) return l.leave(kNotReal);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Value y = l.softmax(l.transposed(x, moved_last(l.rank(x), axis)));
  return {l.transposed(y, moved_back(l.rank(x), axis))};
}

Values layer_norm(Lower& l) {
  const auto length = static_cast<double>(row_length(l));
  if (length == 0 || !takes_if_given(l, "weight") || !takes_if_given(l, "bias"))
    return l.leave("a norm over more than a row of f32");
  const Value x = l.tensor("input");
  const Value centred = l.binary("Subtract", x, l.row_sum(x, 1 / length));
  return {normalized(l, centred, length, l.real_number("eps"))};
}

Values rms_norm(Lower& l) {
  const auto length = static_cast<double>(row_length(l));
  if (length == 0 || !takes_if_given(l, "weight"))
    return l.leave("a norm over more than a row of f32");
  const double eps = l.has("eps") ? l.real_number("eps") : std::numeric_limits<float>::epsilon();
  return {normalized(l, l.tensor("input"), length, eps)};
}

/// One factor and one summand a channel, the channels last.
Values batch_norm(Lower& l) {
  const Value x = l.tensor("input");
  if (!l.takes(x) || l.rank(x) < 2 || l.call().flag("training")) return l.leave(kNotReal);
  for (const char* name : {"running_mean", "running_var"}) {
    if (!l.has(name) || !l.takes(l.tensor(name))) return l.leave("statistics that are not f32");
  }
  if (!takes_if_given(l, "weight") || !takes_if_given(l, "bias")) return l.leave(kNotReal);
  const Value rows = l.transposed(x, moved_last(l.rank(x), 1));
  if (const Value y = folded_into_convolution(l, rows); y != kNoValue)
    return {l.transposed(y, moved_back(l.rank(x), 1))};
  const Value variance = l.binary("Add", l.tensor("running_var"), l.real(l.real_number("eps")));
  Value factor = l.unary("ReciprocalSquareRoot", variance);
  if (l.has("weight")) factor = l.binary("Multiply", factor, l.tensor("weight"));
  Value summand = l.binary("Multiply", l.tensor("running_mean"), factor);
  summand =
      l.has("bias") ? l.binary("Subtract", l.tensor("bias"), summand) : l.unary("Negate", summand);
  const Value y = l.binary("Add", l.binary("Multiply", rows, factor), summand);
  return {l.transposed(y, moved_back(l.rank(x), 1))};
}

}  // namespace modelport::ops::xnnpack
