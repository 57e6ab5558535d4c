// A product with a transposed weight as Gemm, which reads the weight as it is stored.
#include <unordered_set>

#include "passes/constants.h"
#include "passes/onnx_passes.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/weight_products.h"

namespace modelport::passes {
namespace {

class GemmFinder {
 public:
  explicit GemmFinder(const ir::Graph& graph) : graph_(graph) {
    for (const ir::Node& node : graph.nodes()) {
      if (weight_transposed_by(graph, node) != ir::ValueId{}) continue;
      ir::for_each_operand(node, [&](ir::ValueId id) { plain_.insert(id.index); });
    }
  }

  /// What Gemm is to compute instead of the node; `only_shared`: only where the weight is also used
  /// as it is, so that a transposed copy would be a second one.
  std::optional<WeightProduct> find(const ir::Node& node, bool only_shared) const {
    if (node.op != "onnx.MatMul") return std::nullopt;
    const auto found = weight_product(graph_, node);
    if (!found || (only_shared && !plain_.contains(found->weight.index))) return std::nullopt;
    const ir::TensorType& x = graph_.value(found->input).tensor();
    // Not f16, for which onnxruntime's kernel is a hundred times slower than that of MatMul: it
    // transposes the weight once, when it loads the file.
    const bool fits = x.shape.size() >= 2 && x.shape.back().constant() &&
                      (x.dtype == Dtype::f32 || x.dtype == Dtype::f64);
    return fits ? found : std::nullopt;
  }

 private:
  const ir::Graph& graph_;
  std::unordered_set<std::uint32_t> plain_;
};

/// All sizes of a tensor but the last. Tensors with the same ones share the node: in a decoder they
/// are nearly all those of its tokens.
class LeadingSizes {
 public:
  ir::ValueId of(Rebuild& rebuild, ir::ValueId x, ir::PlaceId place) {
    const auto& shape = rebuild.type(x).shape;
    const std::vector<shape::Int> sizes(shape.begin(), shape.end() - 1);
    for (const auto& [known, value] : found_)
      if (known == sizes) return value;
    const auto lead = static_cast<std::int64_t>(sizes.size());
    const ir::ValueId value =
        rebuild.emit("onnx.Shape", {x}, {{"start", {shape::Int(0)}}, {"end", {shape::Int(lead)}}},
                     {Dtype::i64, {shape::Int(lead)}}, place);
    found_.emplace_back(sizes, value);
    return value;
  }

 private:
  std::vector<std::pair<std::vector<shape::Int>, ir::ValueId>> found_;
};

/// x [..., k] times the transposed weight [n, k]: the leading axes of x are one for Gemm.
ir::ValueId product(Rebuild& rebuild, ir::ValueId x, ir::ValueId weight, const ir::TensorType& type,
                    ir::PlaceId place, const shape::Ranges& ranges, LeadingSizes& leading) {
  const std::vector<ir::NamedArg> transposed{{"transB", {shape::Int(1)}}};
  const auto& sizes = rebuild.type(x).shape;
  const shape::Int rows = shape::product({sizes.begin(), sizes.end() - 1});
  const std::int64_t k = sizes.back().constant().value();
  const std::int64_t n = type.shape.back().constant().value();
  if (sizes.size() == 2) return rebuild.emit("onnx.Gemm", {x, weight}, transposed, type, place);
  const auto lead = static_cast<std::int64_t>(sizes.size()) - 1;
  const Dtype dtype = type.dtype;
  const ir::ValueId flat = rebuild.emit("onnx.Reshape", {x, rebuild.ints({-1, k})}, {},
                                        {dtype, {rows, shape::Int(k)}}, place);
  const ir::ValueId result =
      rebuild.emit("onnx.Gemm", {flat, weight}, transposed, {dtype, {rows, shape::Int(n)}}, place);
  const ir::ValueId target =
      rebuild.emit("onnx.Concat", {leading.of(rebuild, x, place), rebuild.ints({n})},
                   {{"axis", {shape::Int(0)}}}, {Dtype::i64, {shape::Int(lead + 1)}}, place);
  // Without the attribute a 0 would ask for the size that is there already.
  std::vector<ir::NamedArg> zeros;
  if (shape::bounds(rows, ranges).lo < 1) zeros.push_back({"allowzero", {shape::Int(1)}});
  return rebuild.emit("onnx.Reshape", {result, target}, zeros, type, place);
}

void use_gemm(ir::Graph& graph, bool only_shared) {
  const GemmFinder finder(graph);
  Rebuild rebuild(graph);
  LeadingSizes leading;
  const shape::Ranges ranges = shape::ranges_of(graph.dims);
  for (const ir::Node& node : graph.nodes()) {
    const auto found = finder.find(node, only_shared);
    if (!found) {
      rebuild.copy(node);
      continue;
    }
    const ir::TensorType type = graph.value(node.results[0]).tensor();
    rebuild.replace(node.results[0], product(rebuild, rebuild(found->input), rebuild(found->weight),
                                             type, node.place, ranges, leading));
  }
  graph = std::move(rebuild).finish();
}

}  // namespace

void use_gemm_for_shared_weights(ir::Graph& graph) { use_gemm(graph, true); }
void use_gemm_for_all_weights(ir::Graph& graph) { use_gemm(graph, false); }

}  // namespace modelport::passes
