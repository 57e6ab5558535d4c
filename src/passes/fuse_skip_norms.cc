// A sum and the norm of it, as residual connections have them, by one kernel of onnxruntime's that
// gives both.
#include <map>
#include <set>

#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

class SkipNorms {
 public:
  SkipNorms(const ir::Graph& graph, FusionContext& context)
      : graph_(graph), context_(context), rebuild_(graph) {
    for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
      if (fits(graph.node({i}))) norm_of_.try_emplace(input_of(graph.node({i}), 0), ir::NodeId{i});
    }
  }

  ir::Graph run() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.node({i});
      if (done_.contains({i})) continue;
      const auto norm = node.results.empty() ? norm_of_.end() : norm_of_.find(node.results[0]);
      if (norm == norm_of_.end()) {
        rebuild_.copy(node);
      } else {
        fuse(node, norm->second);
      }
    }
    return std::move(rebuild_).finish();
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  /// A norm over the last axis, with weights of it, of a sum in which nothing is repeated.
  bool fits(const ir::Node& norm) const {
    if (norm.op != "onnx.SimplifiedLayerNormalization" && norm.op != "onnx.LayerNormalization")
      return false;
    const ir::ValueId sum = input_of(norm, 0);
    const ir::TensorType& of = type(sum);
    const std::size_t rank = of.shape.size();
    if (graph_.value(sum).origin != ir::Origin::node || (rank != 2 && rank != 3)) return false;
    if (of.dtype != Dtype::f32 && of.dtype != Dtype::f16) return false;
    const ir::Arg* axis = norm.find("axis");
    if (axis == nullptr || !(*axis == ir::Arg{shape::Int(-1)})) return false;
    for (std::size_t i = 1; i < input_count(norm); ++i) {
      const ir::ValueId weight = input_of(norm, i);
      if (weight == ir::ValueId{}) continue;
      if (graph_.value(weight).origin != ir::Origin::weight || type(weight).shape.size() != 1)
        return false;
    }
    const ir::Node& add = graph_.node(graph_.value(sum).producer);
    return add.op == "onnx.Add" && type(input_of(add, 0)).shape == of.shape &&
           type(input_of(add, 1)).shape == of.shape;
  }

  void fuse(const ir::Node& add, ir::NodeId id) {
    const ir::Node& norm = graph_.node(id);
    const bool simple = norm.op == "onnx.SimplifiedLayerNormalization";
    ir::ArgList inputs{{rebuild_(input_of(add, 0))}, {rebuild_(input_of(add, 1))}};
    for (std::size_t i = 1; i < input_count(norm); ++i) {
      const ir::ValueId weight = input_of(norm, i);
      if (weight != ir::ValueId{}) inputs.push_back({rebuild_(weight)});
    }
    // Between the norm and the sum it may give statistics, which nobody wants.
    const auto results = rebuild_.add(simple ? "com.microsoft.SkipSimplifiedLayerNormalization"
                                             : "com.microsoft.SkipLayerNormalization",
                                      {{"inputs", {std::move(inputs)}},
                                       {"epsilon", *norm.find("epsilon")},
                                       {"outputs_left_out", {shape::Int(2)}}},
                                      {type(norm.results[0]), type(add.results[0])}, norm.place);
    rebuild_.replace(norm.results[0], results[0]);
    rebuild_.replace(add.results[0], results[1]);
    done_.insert(id);
    context_.notes.push_back({"sum and norm", "", graph_.place(norm.place).module_path});
  }

  const ir::Graph& graph_;
  FusionContext& context_;
  Rebuild rebuild_;
  std::map<ir::ValueId, ir::NodeId> norm_of_;  // by the sum
  std::set<ir::NodeId> done_;
};

}  // namespace

void fuse_skip_norms(ir::Graph& graph, FusionContext& context) {
  graph = SkipNorms(graph, context).run();
}

}  // namespace modelport::passes
