// What every way to ExecuTorch has in common in lowering: nothing is rewritten but the nodes.
#pragma once

#include <unordered_set>

#include "ops/executorch/lower.h"
#include "passes/lowering.h"

namespace modelport::passes {

class ExecutorchLowering : public Lowering {
 public:
  explicit ExecutorchLowering(const ir::Graph& source) : Lowering(source) {
    target().guards = source.guards;
    for (const ir::Mutation& mutation : source.mutations) state_.insert(mutation.buffer.index);
  }

 protected:
  ops::executorch::Lower& emitter() override = 0;

  void add_input(ir::ValueId id) override {
    const ir::Value& input = source().value(id);
    set_value(id, target().add_input(input.name, input.type));
    if (const auto* type = std::get_if<ir::TensorType>(&input.type))
      emitter().sources().learn_sizes(value_of(id), type->shape);
  }

  void add_weight(ir::ValueId id) override {
    const ir::Value& weight = source().value(id);
    set_value(id, target().add_weight(weight.name, weight.tensor(), weight.weight_kind));
    if (state_.contains(id.index)) emitter().add_state(value_of(id));
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

 private:
  std::unordered_set<std::uint32_t> state_;
};

}  // namespace modelport::passes
