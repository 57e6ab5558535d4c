// Convolutions over a carried state and new tokens by onnxruntime's kernel, which neither joins the
// two nor computes columns that nobody needs.
#include <map>

#include "ops/fusions/carried_convolution.h"
#include "passes/rebuild.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

using ops::fusions::CarriedConvolution;

constexpr std::string_view kCarriedState = "convolution with a carried state";

class Carry {
 public:
  explicit Carry(const ir::Graph& graph) : graph_(graph), rebuild_(graph) {}

  ir::Graph run(const std::map<ir::NodeId, CarriedConvolution>& sites) {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      rebuild_.copy(graph_.node({i}));
      for (const ir::ValueId result : graph_.node({i}).results) {
        if (const auto by = instead_.find(result); by != instead_.end())
          rebuild_.replace(result, by->second);
      }
      if (const auto site = sites.find(ir::NodeId{i}); site != sites.end()) convolve(site->second);
    }
    ir::Graph result = std::move(rebuild_).finish();
    ir::drop_dead_nodes(result);
    return result;
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  void convolve(const CarriedConvolution& site) {
    std::vector<ir::NamedArg> args{{"input", {rebuild_(site.fresh)}},
                                   {"weight", {rebuild_(site.weight)}},
                                   {"state", {rebuild_(site.state)}}};
    if (site.bias != ir::ValueId{}) args.push_back({"bias", {rebuild_(site.bias)}});
    const auto results =
        rebuild_.add("modelport.causal_convolution", std::move(args),
                     {type(site.fresh), type(site.state)}, graph_.node(site.node).place);
    // The next state is cut off before the convolution, and nothing but the caller reads it.
    for (const ir::ValueId state : site.states) rebuild_.replace(state, results[1]);
    for (const auto& [value, activations] : site.results) {
      ir::ValueId columns = results[0];
      for (const ir::NodeId activation : activations) {
        const ir::Node& node = graph_.node(activation);
        columns =
            rebuild_.add(node.op, {{"self", {columns}}}, {type(site.fresh)}, node.place).front();
      }
      rebuild_.replace(value, columns);  // where it is the convolution's own result
      instead_[value] = columns;
    }
  }

  const ir::Graph& graph_;
  Rebuild rebuild_;
  std::map<ir::ValueId, ir::ValueId> instead_;  // of old values, those of the new graph
};

}  // namespace

void carry_convolutions(ir::Graph& graph, FusionContext& context) {
  std::map<ir::NodeId, CarriedConvolution> sites;
  const auto note = [&](ir::NodeId node, const std::string& why) {
    const std::string& path = graph.place(graph.node(node).place).module_path;
    context.notes.push_back({std::string(kCarriedState), why, path});
  };
  for (auto& found : ops::fusions::find_carried_convolutions(graph)) {
    if (const auto* other = std::get_if<ops::fusions::OtherConvolution>(&found)) {
      note(other->node, other->why);
      continue;
    }
    auto& site = std::get<CarriedConvolution>(found);
    note(site.node, "");
    sites.emplace(site.node, std::move(site));
  }
  if (!sites.empty()) graph = Carry(graph).run(sites);
}

}  // namespace modelport::passes
