// What is ExecuTorch's own in lowering: nothing is rewritten but the nodes.
#include "ops/executorch/lower.h"
#include "passes/lower_targets.h"
#include "passes/lowering.h"

namespace modelport::passes {
namespace {

class ExecutorchLowering : public Lowering {
 public:
  explicit ExecutorchLowering(const ir::Graph& source)
      : Lowering(source), lower_(target(), dims()) {
    target().guards = source.guards;
  }

 private:
  ops::executorch::Lower& emitter() override { return lower_; }

  void add_input(ir::ValueId id) override {
    const ir::Value& input = source().value(id);
    set_value(id, target().add_input(input.name, input.type));
    if (const auto* type = std::get_if<ir::TensorType>(&input.type))
      lower_.sources().learn_sizes(value_of(id), type->shape);
  }

  void add_weight(ir::ValueId id) override {
    const ir::Value& weight = source().value(id);
    set_value(id, target().add_weight(weight.name, weight.tensor(), weight.weight_kind));
  }

  /// Arguments mention symbols, and the node that gives a symbol its value is typed with it.
  void take_number(const ir::ScalarType&, ir::ValueId) override {}

  void finish() override {
    for (const ir::Output& output : source().outputs)
      target().outputs.push_back({output.name, translate(output.value)});
    for (const ir::Mutation& mutation : source().mutations)
      target().mutations.push_back({value_of(mutation.buffer), value_of(mutation.value)});
    for (const ir::Assumption& assumption : source().assumptions) {
      const ir::Place& place = source().place(assumption.place);
      target().assumptions.push_back({value_of(assumption.value), assumption.expected,
                                      target().add_place(place.where, place.module_path),
                                      assumption.what});
    }
  }

  ops::executorch::Lower lower_;
};

}  // namespace

ir::Graph lower_to_executorch(const ir::Graph& graph) { return ExecutorchLowering(graph).run(); }

}  // namespace modelport::passes
