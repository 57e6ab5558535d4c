// A product with a weight that stays as it is stored. Gemm takes two axes, so that tensors with
// more are flattened before it and get their sizes back after it; a kernel of onnxruntime's takes
// them as they are.
#include "passes/constants.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

/// x [lead..., k in one axis or several] times the transposed weight [n, k], as [lead..., n in one
/// axis or several].
struct FlatProduct {
  ir::ValueId x, weight;
  std::size_t lead = 0;
};

class FlatProducts {
 public:
  FlatProducts(const ir::Graph& graph, FusionContext& context)
      : graph_(graph), context_(context), rebuild_(graph) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (const auto product = find(node)) {
        fuse(node, *product);
      } else {
        rebuild_.copy(node);
      }
    }
    return std::move(rebuild_).finish();
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  const ir::Node* producer(ir::ValueId id, std::string_view op) const {
    if (id == ir::ValueId{} || graph_.value(id).origin != ir::Origin::node) return nullptr;
    const ir::Node& node = graph_.node(graph_.value(id).producer);
    return node.op == op ? &node : nullptr;
  }

  std::optional<FlatProduct> find(const ir::Node& node) const {
    if (node.op != "onnx.Reshape") return std::nullopt;
    const ir::Node* gemm = producer(input_of(node, 0), "onnx.Gemm");
    if (gemm == nullptr || input_count(*gemm) != 2 || gemm->args.size() != 2) return std::nullopt;
    const ir::Arg* transposed = gemm->find("transB");
    if (transposed == nullptr || !(*transposed == ir::Arg{shape::Int(1)})) return std::nullopt;
    const ir::Node* flat = producer(input_of(*gemm, 0), "onnx.Reshape");
    if (flat == nullptr || type(node.results[0]).dtype != Dtype::f32) return std::nullopt;
    const FlatProduct found{input_of(*flat, 0), input_of(*gemm, 1),
                            common_axes(input_of(*flat, 0), node.results[0])};
    const shape::Int k = type(found.weight).shape[1], n = type(found.weight).shape[0];
    const bool fits = found.lead > 0 && k.constant() && n.constant() &&
                      rest(found.x, found.lead) == k && rest(node.results[0], found.lead) == n;
    return fits ? std::optional(found) : std::nullopt;
  }

  /// How many of the first axes are the same; both have at least one more.
  std::size_t common_axes(ir::ValueId a, ir::ValueId b) const {
    const auto &left = type(a).shape, &right = type(b).shape;
    std::size_t count = 0;
    while (count + 1 < std::min(left.size(), right.size()) && left[count] == right[count]) ++count;
    return count;
  }

  shape::Int rest(ir::ValueId id, std::size_t lead) const {
    const auto& sizes = type(id).shape;
    return shape::product({sizes.begin() + static_cast<std::ptrdiff_t>(lead), sizes.end()});
  }

  void fuse(const ir::Node& node, const FlatProduct& product) {
    const ir::TensorType& wanted = type(node.results[0]);
    const auto& weight = type(product.weight).shape;
    const ir::ValueId x = with_rest(rebuild_(product.x), product.lead, {weight[1]}, node.place);
    std::vector<shape::Int> sizes(wanted.shape.begin(),
                                  wanted.shape.begin() + static_cast<std::ptrdiff_t>(product.lead));
    sizes.push_back(weight[0]);
    const ir::ValueId result =
        rebuild_.emit("com.microsoft.FusedMatMul", {x, rebuild_(product.weight)},
                      {{"transB", {shape::Int(1)}}}, {wanted.dtype, sizes}, node.place);
    rebuild_.replace(node.results[0],
                     with_rest(result, product.lead,
                               {wanted.shape.begin() + static_cast<std::ptrdiff_t>(product.lead),
                                wanted.shape.end()},
                               node.place));
    context_.notes.push_back({"product as stored", "", graph_.place(node.place).module_path});
  }

  /// With other axes behind the first ones, all of which have constant sizes.
  ir::ValueId with_rest(ir::ValueId id, std::size_t lead, const std::vector<shape::Int>& rest,
                        ir::PlaceId place) {
    const ir::TensorType from = rebuild_.type(id);
    if (from.shape.size() == lead + rest.size()) return id;
    std::vector<std::int64_t> target(lead, 0);  // 0 is the size that is there
    std::vector<shape::Int> sizes(from.shape.begin(),
                                  from.shape.begin() + static_cast<std::ptrdiff_t>(lead));
    for (const shape::Int& size : rest) {
      target.push_back(size.constant().value());
      sizes.push_back(size);
    }
    return rebuild_.emit("onnx.Reshape", {id, rebuild_.ints(target)}, {}, {from.dtype, sizes},
                         place);
  }

  const ir::Graph& graph_;
  FusionContext& context_;
  Rebuild rebuild_;
};

}  // namespace

void fuse_flat_products(ir::Graph& graph, FusionContext& context) {
  graph = FlatProducts(graph, context).run();
  drop_unused(graph);
}

}  // namespace modelport::passes
