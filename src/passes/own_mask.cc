#include "passes/own_mask.h"

namespace modelport::passes {
namespace {

using ops::fusions::ScoreStep;

ir::Arg list_of(const std::vector<shape::Int>& sizes) {
  ir::ArgList list;
  for (const shape::Int& size : sizes) list.push_back({size});
  return {std::move(list)};
}

class Replay {
 public:
  Replay(const ir::Graph& source, Rebuild& rebuild) : source_(source), rebuild_(rebuild) {}

  void take(const ScoreStep& step) {
    const ir::Node& node = source_.node(step.node);
    const Dtype dtype = source_.value(node.results[0]).tensor().dtype;
    if (step.adds && made_ == ir::ValueId{}) {
      made_ = in_dtype(operand(step, node), dtype, node.place);
      return;
    }
    if (made_ == ir::ValueId{}) made_ = zeros(dtype, node.place);
    made_ = in_dtype(made_, dtype, node.place);
    std::vector<ir::NamedArg> args;
    for (const ir::NamedArg& named : node.args) {
      const bool is_operand = !step.operand.empty() && named.name == step.operand;
      args.push_back({named.name, named.name == step.scores ? ir::Arg{made_}
                                  : is_operand              ? ir::Arg{operand(step, node)}
                                                            : rebuild_.translated(named.arg)});
    }
    made_ =
        rebuild_.add(node.op, std::move(args), {ir::TensorType{dtype, step.sizes}}, node.place)[0];
  }

  ir::ValueId made() const { return made_; }

 private:
  ir::ValueId operand(const ScoreStep& step, const ir::Node& node) {
    const ir::ValueId given = rebuild_(*node.find(step.operand)->get<ir::ValueId>());
    return viewed(rebuild_, given, step.operand_sizes, node.place);
  }

  ir::ValueId zeros(Dtype dtype, ir::PlaceId place) {
    const std::vector<shape::Int> sizes(4, shape::Int(1));
    return rebuild_.add(std::string(ops::fusions::kFill),
                        {{"size", list_of(sizes)}, {"fill_value", {0.0}}, {"dtype", {dtype}}},
                        {ir::TensorType{dtype, sizes}}, place)[0];
  }

  ir::ValueId in_dtype(ir::ValueId value, Dtype dtype, ir::PlaceId place) {
    const ir::TensorType type = rebuild_.type(value);
    if (type.dtype == dtype) return value;
    return rebuild_.add(std::string(ops::fusions::kConvert),
                        {{"self", {value}}, {"dtype", {dtype}}},
                        {ir::TensorType{dtype, type.shape}}, place)[0];
  }

  const ir::Graph& source_;
  Rebuild& rebuild_;
  ir::ValueId made_ = {};
};

}  // namespace

ir::ValueId own_mask(const ir::Graph& source, std::span<const ScoreStep> steps, Rebuild& rebuild) {
  Replay replay(source, rebuild);
  for (const ScoreStep& step : steps) replay.take(step);
  return replay.made();
}

ir::ValueId viewed(Rebuild& rebuild, ir::ValueId value, const std::vector<shape::Int>& sizes,
                   ir::PlaceId place) {
  const ir::TensorType type = rebuild.type(value);
  if (type.shape == sizes) return value;
  return rebuild.add(std::string(ops::fusions::kReshape),
                     {{"self", {value}}, {"shape", list_of(sizes)}},
                     {ir::TensorType{type.dtype, sizes}}, place)[0];
}

}  // namespace modelport::passes
