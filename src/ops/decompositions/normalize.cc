// Norms by the runtime's kernels; sums of half-precision numbers are kept in f32.
#include <cmath>
#include <limits>

#include "ops/decompositions/neural.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

Dtype wide(Dtype dtype) { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

Operand cast_if_given(Emitter& e, std::string_view name, Dtype dtype) {
  if (!e.has(name)) return std::nullopt;
  return cast(e, e.tensor(name), dtype);
}

Axes last_axes(std::int64_t rank, std::size_t count) {
  Axes axes;
  for (std::int64_t i = rank - static_cast<std::int64_t>(count); i < rank; ++i) axes.push_back(i);
  return axes;
}

Value in_own_type(Emitter& e) {
  const Value x = e.tensor("self");
  return cast(e, x, e.call().dtype("dtype").value_or(e.dtype(x)));
}

struct RootMeanSquare {
  Value values, reciprocal;
};

RootMeanSquare root_mean_square(Emitter& e) {
  const Dtype own = e.dtype(e.tensor("input"));
  const Value x = cast(e, e.tensor("input"), wide(own));
  const Axes axes = last_axes(e.rank(x), e.call().ints("normalized_shape").size());
  const double least = own == Dtype::f64 ? std::numeric_limits<double>::epsilon()
                                         : std::numeric_limits<float>::epsilon();
  const Value mean = e.call("aten.mean.dim", {mul(e, x, x), emit::int_list(axes), true});
  const Value reciprocal =
      e.call("aten.rsqrt",
             {e.call("aten.add.Scalar", {mean, e.has("eps") ? e.real_number("eps") : least})});
  Value y = mul(e, x, reciprocal);
  if (e.has("weight")) y = mul(e, y, cast(e, e.tensor("weight"), wide(own)));
  return {cast(e, y, e.result().dtype), reciprocal};
}

}  // namespace

Value softmax(Emitter& e) { return e.call("aten._softmax", {in_own_type(e), e.arg("dim"), false}); }

Value log_softmax(Emitter& e) {
  return e.call("aten._log_softmax", {in_own_type(e), e.arg("dim"), false});
}

Value safe_softmax(Emitter& e) {
  const Value x = in_own_type(e);
  const Value y = e.call("aten._softmax", {x, e.arg("dim"), false});
  const Value open = e.call("aten.ne.Scalar", {x, -std::numeric_limits<double>::infinity()});
  const Value seen = e.call("aten.any.dim", {open, e.arg("dim"), true});
  return where(e, seen, y, e.number(0.0, e.dtype(y)));
}

Value layer_norm(Emitter& e) {
  const Value x = e.tensor("input");
  const Dtype own = e.dtype(x);
  Dtype used = own;
  for (const char* name : {"weight", "bias"}) {
    if (e.has(name) && e.dtype(e.tensor(name)) != own) used = Dtype::f32;
  }
  const Value y = e.call("aten.native_layer_norm", {cast(e, x, used), e.arg("normalized_shape"),
                                                    cast_if_given(e, "weight", used),
                                                    cast_if_given(e, "bias", used), e.arg("eps")});
  return cast(e, y, own);
}

Value group_norm(Emitter& e) {
  const Value x = e.tensor("input");
  const Shape shape = e.shape(x);
  return e.call("aten.native_group_norm",
                {x, e.arg("weight"), e.arg("bias"), shape[0], shape[1], numel(from(shape, 2)),
                 e.arg("num_groups"), e.arg("eps")});
}

Value instance_norm(Emitter& e) {
  const Value x = e.tensor("input");
  if (!e.call().flag("use_input_stats"))
    return e.call("aten._native_batch_norm_legit_no_training",
                  {x, e.arg("weight"), e.arg("bias"), e.arg("running_mean"), e.arg("running_var"),
                   e.arg("momentum"), e.arg("eps")});
  const std::int64_t channels = known(e, e.shape(x)[1], "the number of channels must be fixed");
  return e.call("aten.group_norm", {x, channels, e.arg("weight"), e.arg("bias"), e.arg("eps")});
}

Values native_batch_norm(Emitter& e) {
  if (!e.call().flag("training"))
    return e.calls("aten._native_batch_norm_legit_no_training",
                   {e.arg("input"), e.arg("weight"), e.arg("bias"), e.arg("running_mean"),
                    e.arg("running_var"), e.arg("momentum"), e.arg("eps")});
  return e.calls(
      "aten._native_batch_norm_legit.no_stats",
      {e.arg("input"), e.arg("weight"), e.arg("bias"), true, e.arg("momentum"), e.arg("eps")});
}

Value batch_norm(Emitter& e) { return native_batch_norm(e)[0]; }

Value rms_norm(Emitter& e) { return root_mean_square(e).values; }

Values fused_rms_norm(Emitter& e) {
  const RootMeanSquare found = root_mean_square(e);
  return {found.values, cast(e, found.reciprocal, e.result(1).dtype)};
}

Value weight_norm(Emitter& e) {
  const Value v = e.tensor("v");
  Axes others;
  for (std::int64_t i = 0; i < e.rank(v); ++i) {
    if (i != e.axis("dim", e.rank(v))) others.push_back(i);
  }
  const Value norm = e.call("aten.sqrt", {sum_over(e, mul(e, v, v), others, true)});
  return mul(e, v, div(e, e.tensor("g"), norm));
}

Value renorm(Emitter& e) {
  const Value x = e.tensor("self");
  const double p = e.real_number("p");
  Axes others;
  for (std::int64_t i = 0; i < e.rank(x); ++i) {
    if (i != e.axis("dim", e.rank(x))) others.push_back(i);
  }
  const Value powers = e.call("aten.pow.Tensor_Scalar", {e.call("aten.abs", {x}), p});
  const Value norm = e.call("aten.pow.Tensor_Scalar", {sum_over(e, powers, others, true), 1 / p});
  const double most = e.real_number("maxnorm");
  const Value factor =
      e.call("aten.mul.Scalar",
             {e.call("aten.reciprocal", {e.call("aten.add.Scalar", {norm, 1e-7})}), most});
  const Value large = e.call("aten.gt.Scalar", {norm, most});
  return mul(e, x, where(e, large, factor, e.number(1.0, e.dtype(x))));
}

}  // namespace modelport::ops::parts
