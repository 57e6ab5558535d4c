// x * rsqrt(mean(x^2) + eps) * weight, as models write it by hand, becomes one aten.rms_norm.
#include "ops/fusions/fusion.h"

namespace modelport::ops::fusions {
namespace {

constexpr std::string_view kNorm =
    "norm@aten.mul.Tensor(self=x, other=aten.rsqrt(self=aten.add.Tensor(other=eps, "
    "self=aten.mean.dim(dim=axes, keepdim=True, self={aten.square(self=x) | "
    "aten.mul.Tensor(self=x, other=x) | aten.pow.Tensor_Scalar(self=x, exponent=2)}))))";

/// Over the last axis, whose size is known now.
bool is_norm(const Found& found) {
  if (!found.is_value("x") || !found.number("eps")) return false;
  const ir::TensorType& x = found.type("x");
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  const auto axes = found.integers("axes");
  return rank > 0 && axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1) &&
         x.shape.back().is_constant() && is_floating(x.dtype);
}

/// The weight is one number for each place of the last axis.
bool is_weighted_norm(const Found& found) {
  if (!is_norm(found) || !found.is_value("weight") || found.uses("norm") != 1) return false;
  const ir::TensorType& weight = found.type("weight");
  const ir::TensorType& norm = found.type("norm");
  return weight.shape.size() == 1 && weight.shape[0] == norm.shape.back() &&
         weight.dtype == norm.dtype;
}

std::vector<ir::NamedArg> norm_args(const Found& found, const ir::Node&) {
  return {{"input", found.arg("x")},
          {"normalized_shape", {ir::ArgList{{found.type("x").shape.back()}}}},
          {"eps", {*found.number("eps")}}};
}

std::vector<ir::NamedArg> weighted_norm_args(const Found& found, const ir::Node& node) {
  std::vector<ir::NamedArg> args = norm_args(found, node);
  args.insert(args.begin() + 2, {"weight", found.arg("weight")});
  return args;
}

}  // namespace

std::span<const Fusion> rms_norm() {
  static const std::vector<Fusion> rows{
      {.name = "norm by the root mean square",
       .pattern = std::string(kNorm),
       .guard = is_norm,
       .op = "aten.rms_norm",
       .args = norm_args},
      {.name = "norm by the root mean square, times a weight",
       .pattern = "aten.mul.Tensor(self=" + std::string(kNorm) + ", other=weight)",
       .guard = is_weighted_norm,
       .op = "aten.rms_norm",
       .args = weighted_norm_args},
  };
  return rows;
}

}  // namespace modelport::ops::fusions
