// Torch's own operators: rows of ours are taken apart, everything else stays as it is.
#include <algorithm>

#include "ops/emit/emitter.h"
#include "passes/lower_targets.h"
#include "passes/rebuild.h"
#include "shape/program_dims.h"

namespace modelport::passes {
namespace {

/// Nobody but us has registered them with torch, so a file that has them could not be loaded.
const ops::Decompose* own_parts(const ops::OpDef* op) {
  if (op == nullptr || !op->name.starts_with("modelport.")) return nullptr;
  return std::get_if<ops::Decompose>(&op->executorch);
}

class TorchCalls : public ops::emit::Emitter {
 public:
  TorchCalls(ir::Graph& graph, shape::Dims& dims)
      : Emitter(graph, dims, {.name = "pt2", .ways_out = {"export to onnx"}}) {}

  std::string_view refusal(const ops::OpDef&) const override { return {}; }

 protected:
  ops::Values lower_row(const ops::OpDef& op) override {
    if (const ops::Decompose* parts = own_parts(&op))
      return parts->many != nullptr ? parts->many(*this) : ops::Values{parts->one(*this)};
    std::vector<ir::NamedArg> args;
    for (const ops::Parameter& parameter : ops::schema_of(op).parameters) {
      const ir::Arg& arg = call().arg(parameter.name);
      if (!parameter.has_default || arg != parameter.default_value)
        args.push_back({parameter.name, arg});
    }
    const ir::NodeId node = graph().add_node(std::string(op.name), std::move(args),
                                             {results().begin(), results().end()}, place());
    return graph().node(node).results;
  }

  ops::Value add_constant(ir::TensorType, std::vector<ir::NamedArg>) override {
    throw InternalError("a decomposition into torch's operators has numbers, not constants");
  }
};

}  // namespace

ir::Graph lower_to_pt2(const ir::Graph& graph) {
  const auto is_own = [](const ir::Node& node) {
    return own_parts(ops::find_op(node.op)) != nullptr;
  };
  if (std::ranges::none_of(graph.nodes(), is_own)) return graph;
  Rebuild rebuild(graph);
  shape::Dims dims = shape::dims_of(graph.dims);
  TorchCalls calls(rebuild.graph(), dims);
  for (const ir::Node& node : graph.nodes()) {
    if (!is_own(node)) {
      rebuild.copy(node);
      continue;
    }
    std::vector<ir::NamedArg> args;
    for (const ir::NamedArg& named : node.args)
      args.push_back({named.name, rebuild.translated(named.arg)});
    std::vector<ir::Type> types;
    for (const ir::ValueId id : node.results) types.push_back(graph.value(id).type);
    const ops::Values values = calls.lower(*ops::find_op(node.op), args, types, node.place);
    for (std::size_t i = 0; i < values.size(); ++i) rebuild.replace(node.results[i], values[i]);
  }
  return std::move(rebuild).finish();
}

}  // namespace modelport::passes
