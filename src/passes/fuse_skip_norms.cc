// A sum and the norm of it, as residual connections have them. By the root mean square they are one
// kernel of onnxruntime's that gives both. Around a mean they are a kernel each: that for both goes
// number by number and takes longer than the two.
#include <map>
#include <set>

#include "ir/users.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kFusion = "sum and norm";

class SkipNorms {
 public:
  SkipNorms(const ir::Graph& graph, FusionContext& context)
      : graph_(graph), users_(graph), context_(context), rebuild_(graph) {
    for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
      const ir::Node& node = graph.node({i});
      if (!fits(node)) continue;
      if (is_quicker_apart(node)) {
        apart_.insert({i});
      } else {
        norm_of_.try_emplace(input_of(node, 0), ir::NodeId{i});
      }
    }
  }

  ir::Graph run() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.node({i});
      if (done_.contains({i})) continue;
      const auto norm = node.results.empty() ? norm_of_.end() : norm_of_.find(node.results[0]);
      if (apart_.contains({i})) {
        keep_apart(node);
      } else if (norm == norm_of_.end()) {
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
      const bool is_stored = graph_.value(weight).origin == ir::Origin::weight;
      if ((!is_stored && !is_quicker_apart(norm)) || type(weight).shape.size() != 1) return false;
    }
    const ir::Node& add = graph_.node(graph_.value(sum).producer);
    return add.op == "onnx.Add" && type(input_of(add, 0)).shape == of.shape &&
           type(input_of(add, 1)).shape == of.shape;
  }

  /// In f16 onnxruntime would convert between the two.
  bool is_quicker_apart(const ir::Node& norm) const {
    return norm.op == "onnx.LayerNormalization" && type(norm.results[0]).dtype == Dtype::f32;
  }

  /// onnxruntime makes one node of both when it loads the file, where nobody else reads the sum;
  /// but not where the norm's weight has an axis more.
  void keep_apart(const ir::Node& norm) {
    context_.notes.push_back({std::string(kFusion), "a kernel for each is quicker",
                              graph_.place(norm.place).module_path});
    if (!users_.only(input_of(norm, 0))) return rebuild_.copy(norm);
    const ir::ValueId weight = input_of(norm, 1);
    const ir::ValueId before = rebuild_(weight);  // others may read it
    rebuild_.replace(
        weight,
        rebuild_.emit("onnx.Unsqueeze", {before, rebuild_.ints({0})}, {},
                      {type(weight).dtype, {shape::Int(1), type(weight).shape[0]}}, norm.place));
    rebuild_.copy(norm);
    rebuild_.replace(weight, before);
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
    context_.notes.push_back({std::string(kFusion), "", graph_.place(norm.place).module_path});
  }

  const ir::Graph& graph_;
  ir::Users users_;
  FusionContext& context_;
  Rebuild rebuild_;
  std::map<ir::ValueId, ir::NodeId> norm_of_;  // by the sum
  std::set<ir::NodeId> done_;
  std::set<ir::NodeId> apart_;
};

}  // namespace

void fuse_skip_norms(ir::Graph& graph, FusionContext& context) {
  graph = SkipNorms(graph, context).run();
}

}  // namespace modelport::passes
