// Norms as models write them by hand become one operator: aten.rms_norm or aten.layer_norm.
#include "ops/fusions/fusion.h"

namespace modelport::ops::fusions {
namespace {

constexpr std::string_view kNorm =
    "norm@aten.mul.Tensor(self=x, other=aten.rsqrt(self=aten.add.Tensor(other=eps, "
    "self=aten.mean.dim(dim=axes, keepdim=True, self={aten.square(self=x) | "
    "aten.mul.Tensor(self=x, other=x) | aten.pow.Tensor_Scalar(self=x, exponent=2)}))))";

/// Models subtract the mean once for both places, or once for each.
constexpr std::string_view kCentred =
    "aten.sub.Tensor(self=x, other=aten.mean.dim(dim=axes, keepdim=True, self=x))";

std::string variance_and_eps() {
  const std::string c(kCentred);
  return "aten.add.Tensor(other=eps, self={aten.mean.dim(dim=axes, keepdim=True, self={aten.square("
         "self=" +
         c + ") | aten.mul.Tensor(self=" + c + ", other=" + c +
         ") | aten.pow.Tensor_Scalar(self=" + c +
         ", exponent=2)}) | aten.var.correction(self=x, dim=axes, correction=0, keepdim=True)})";
}

std::string divided_by_deviation() {
  return "norm@aten.div.Tensor(self=" + std::string(kCentred) +
         ", other=aten.sqrt(self=" + variance_and_eps() + "))";
}

std::string times_inverse_deviation() {
  return "norm@aten.mul.Tensor(self=" + std::string(kCentred) +
         ", other=aten.rsqrt(self=" + variance_and_eps() + "))";
}

/// Over the last axis, whose size is known now.
bool is_norm(const Found& found) {
  if (!found.is_value("x") || !found.number("eps")) return false;
  const ir::TensorType& x = found.type("x");
  const auto rank = static_cast<std::int64_t>(x.shape.size());
  const auto axes = found.integers("axes");
  return rank > 0 && axes.size() == 1 && (axes[0] == -1 || axes[0] == rank - 1) &&
         x.shape.back().is_constant() && is_floating(x.dtype);
}

/// One number for each place of the last axis.
bool is_row_of_norm(const Found& found, std::string_view name) {
  if (!found.is_value(name)) return false;
  const ir::TensorType& row = found.type(name);
  const ir::TensorType& norm = found.type("norm");
  return row.shape.size() == 1 && row.shape[0] == norm.shape.back() && row.dtype == norm.dtype;
}

bool is_weighted_norm(const Found& found) {
  return is_norm(found) && found.uses("norm") == 1 && is_row_of_norm(found, "weight");
}

bool is_biased_norm(const Found& found) {
  return is_weighted_norm(found) && found.uses("weighted") == 1 && is_row_of_norm(found, "bias");
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

std::vector<ir::NamedArg> biased_norm_args(const Found& found, const ir::Node& node) {
  std::vector<ir::NamedArg> args = weighted_norm_args(found, node);
  args.insert(args.begin() + 3, {"bias", found.arg("bias")});
  return args;
}

}  // namespace

std::span<const Fusion> norms() {
  static const std::string weighted = "aten.mul.Tensor(other=weight, self={" +
                                      divided_by_deviation() + " | " + times_inverse_deviation() +
                                      "})";
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
      {.name = "norm by mean and deviation",
       .pattern = divided_by_deviation(),
       .guard = is_norm,
       .op = "aten.layer_norm",
       .args = norm_args},
      {.name = "norm by mean and inverse deviation",
       .pattern = times_inverse_deviation(),
       .guard = is_norm,
       .op = "aten.layer_norm",
       .args = norm_args},
      {.name = "norm by mean and deviation, times a weight",
       .pattern = weighted,
       .guard = is_weighted_norm,
       .op = "aten.layer_norm",
       .args = weighted_norm_args},
      {.name = "norm by mean and deviation, times a weight, and a bias",
       .pattern = "aten.add.Tensor(other=bias, self=weighted@" + weighted + ")",
       .guard = is_biased_norm,
       .op = "aten.layer_norm",
       .args = biased_norm_args},
  };
  return rows;
}

}  // namespace modelport::ops::fusions
