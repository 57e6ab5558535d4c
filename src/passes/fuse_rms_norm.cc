// x * rsqrt(mean(x^2) + eps) * weight, as models write it by hand, becomes one aten.rms_norm.
#include "passes/fuse.h"
#include "passes/match.h"

namespace modelport::passes {
namespace {

/// rsqrt(mean(x * x over the last axis) + eps): x and eps.
struct Scale {
  ir::ValueId x;
  double epsilon = 0;
};

std::optional<ir::ValueId> squared(const Match& match, ir::ValueId id) {
  if (const ir::Node* pow = match.made_by(id, "aten.pow.Tensor_Scalar")) {
    if (match.number(*pow, "exponent") == 2.0) return match.value(*pow, "self");
  }
  if (const ir::Node* square = match.made_by(id, "aten.square"))
    return match.value(*square, "self");
  if (const ir::Node* product = match.made_by(id, "aten.mul.Tensor")) {
    const auto a = match.value(*product, "self");
    if (a && a == match.value(*product, "other")) return a;
  }
  return std::nullopt;
}

std::optional<Scale> scale_of(const Match& match, ir::ValueId id) {
  const ir::Node* root = match.made_by(id, "aten.rsqrt");
  const ir::Node* sum = root == nullptr ? nullptr : match.made_by(*root, "self", "aten.add.Tensor");
  const auto epsilon = sum == nullptr ? std::nullopt : match.number(*sum, "other");
  const ir::Node* mean = epsilon ? match.made_by(*sum, "self", "aten.mean.dim") : nullptr;
  if (mean == nullptr || !match.is_true(*mean, "keepdim") || mean->find("dtype") != nullptr)
    return std::nullopt;
  const auto square = match.value(*mean, "self");
  const auto x = square ? squared(match, *square) : std::nullopt;
  if (!x) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(match.type(*x).shape.size());
  const auto axes = match.integers(*mean, "dim");
  if (axes.size() != 1 || (axes[0] != -1 && axes[0] != rank - 1)) return std::nullopt;
  return Scale{*x, *epsilon};
}

/// The product x * scale(x), whichever way round.
std::optional<Scale> normed(const Match& match, const ir::Node& product) {
  if (product.op != "aten.mul.Tensor") return std::nullopt;
  const auto a = match.value(product, "self");
  const auto b = match.value(product, "other");
  if (!a || !b) return std::nullopt;
  if (const auto scale = scale_of(match, *b); scale && scale->x == *a) return scale;
  if (const auto scale = scale_of(match, *a); scale && scale->x == *b) return scale;
  return std::nullopt;
}

std::vector<ir::NamedArg> arguments(const Match& match, const Scale& scale,
                                    std::optional<ir::ValueId> weight) {
  std::vector<ir::NamedArg> args;
  args.push_back({"input", {scale.x}});
  args.push_back({"normalized_shape", {ir::ArgList{{match.type(scale.x).shape.back()}}}});
  if (weight) args.push_back({"weight", {*weight}});
  args.push_back({"eps", {scale.epsilon}});
  return args;
}

}  // namespace

void fuse_rms_norm(ir::Graph& graph) {
  Match match(graph);
  std::unordered_map<std::uint32_t, Scale> scales;  // by the value that is normed
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
    ir::Node& node = graph.node({i});
    if (const auto scale = normed(match, node)) {
      scales.emplace(node.results[0].index, *scale);
      const shape::Int& last = match.type(scale->x).shape.back();
      if (!last.is_constant() || !is_floating(match.type(scale->x).dtype)) continue;
      node.args = arguments(match, *scale, std::nullopt);
      node.op = "aten.rms_norm";
      continue;
    }
    // The weight, if it is one number for each place of the last axis.
    if (node.op != "aten.mul.Tensor") continue;
    const auto a = match.value(node, "self");
    const auto b = match.value(node, "other");
    if (!a || !b) continue;
    for (const auto& [norm, weight] : {std::pair{*a, *b}, std::pair{*b, *a}}) {
      const ir::Node* inner = match.made_by(norm, "aten.rms_norm");
      if (inner == nullptr || inner->find("weight") != nullptr || match.uses(norm) != 1) continue;
      const ir::TensorType& type = match.type(weight);
      if (type.shape.size() != 1 || !(type.shape[0] == match.type(norm).shape.back()) ||
          type.dtype != match.type(norm).dtype)
        continue;
      const auto scale = scales.find(norm.index);
      if (scale == scales.end()) continue;
      node.args = arguments(match, scale->second, weight);
      node.op = "aten.rms_norm";
      break;
    }
  }
  ir::drop_dead_nodes(graph);
}

}  // namespace modelport::passes
