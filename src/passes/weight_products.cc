#include "passes/weight_products.h"

#include "passes/constants.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

bool is_weight(const ir::Graph& graph, ir::ValueId id) {
  return id != ir::ValueId{} && graph.value(id).origin == ir::Origin::weight;
}

/// Gemm of nothing but a product and a sum; `transposes` says whether it does so with its factor.
bool is_plain_gemm(const ir::Node& node, bool transposes) {
  const auto is_one = [&](std::string_view name) {
    const ir::Arg* factor = node.find(name);
    return factor == nullptr || *factor == ir::Arg{1.0};
  };
  if (node.op != "onnx.Gemm" || !is_one("alpha") || !is_one("beta") ||
      node.find("transA") != nullptr)
    return false;
  const ir::Arg* found = node.find("transB");
  return transposes ? found != nullptr && *found == ir::Arg{shape::Int(1)} : found == nullptr;
}

}  // namespace

ir::ValueId weight_transposed_by(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "onnx.Transpose" || !is_weight(graph, input_of(node, 0))) return {};
  const bool swaps = int_list_of(*node.find("perm")) == std::vector<std::int64_t>{1, 0};
  return swaps ? input_of(node, 0) : ir::ValueId{};
}

std::optional<WeightProduct> weight_product(const ir::Graph& graph, const ir::Node& node) {
  if (node.op == "onnx.MatMul") {
    const ir::Value& right = graph.value(input_of(node, 1));
    if (right.origin != ir::Origin::node) return std::nullopt;
    const ir::ValueId weight = weight_transposed_by(graph, graph.node(right.producer));
    if (weight == ir::ValueId{}) return std::nullopt;
    return WeightProduct{input_of(node, 0), weight, {}};
  }
  if (!is_plain_gemm(node, true) || !is_weight(graph, input_of(node, 1))) return std::nullopt;
  return WeightProduct{input_of(node, 0), input_of(node, 1), input_of(node, 2)};
}

std::optional<WeightProduct> any_weight_product(const ir::Graph& graph, const ir::Node& node) {
  if (auto found = weight_product(graph, node)) return found;
  const bool as_it_is = node.op == "onnx.MatMul" || is_plain_gemm(node, false);
  if (!as_it_is || !is_weight(graph, input_of(node, 1))) return std::nullopt;
  return WeightProduct{input_of(node, 0), input_of(node, 1), input_of(node, 2), true};
}

ir::ValueId looked_up(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "onnx.Gather") return {};
  const ir::Arg* axis = node.find("axis");
  if (axis != nullptr && !(*axis->get<shape::Int>() == shape::Int(0))) return {};
  const ir::ValueId table = input_of(node, 0);
  return is_weight(graph, table) ? table : ir::ValueId{};
}

bool is_weight_matrix(const ir::Graph& graph, ir::ValueId id, bool halves) {
  if (!is_weight(graph, id) || graph.value(id).weight_kind != ir::WeightKind::parameter)
    return false;
  const ir::TensorType& weight = graph.value(id).tensor();
  if (weight.shape.size() != 2) return false;
  const auto rows = weight.shape[0].constant().value_or(0);
  const auto columns = weight.shape[1].constant().value_or(0);
  return (weight.dtype == Dtype::f32 || (halves && weight.dtype == Dtype::f16)) &&
         rows * columns >= kLeastWeight;
}

}  // namespace modelport::passes
