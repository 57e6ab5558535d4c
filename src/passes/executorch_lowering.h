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
    const auto* type = std::get_if<ir::TensorType>(&input.type);
    if (type == nullptr) return set_value(id, target().add_input(input.name, input.type));
    set_value(id, as_read(target().add_input(input.name, as_stored(*type)), *type));
    emitter().sources().learn_sizes(stored_value(value_of(id)), type->shape);
  }

  void add_weight(ir::ValueId id) override {
    const ir::Value& weight = source().value(id);
    const ir::ValueId stored =
        target().add_weight(weight.name, as_stored(weight.tensor()), weight.weight_kind);
    if (state_.contains(id.index)) emitter().add_state(stored);
    set_value(id, as_read(stored, weight.tensor()));
  }

  /// Arguments mention symbols, and the node that gives a symbol its value is typed with it.
  void take_number(const ir::ScalarType&, ir::ValueId) override {}

  void finish() override {
    for (const ir::Output& output : source().outputs) {
      ir::Arg value = translate(output.value);
      if (const ir::ValueId* id = value.get<ir::ValueId>()) value = {stored_value(*id)};
      target().outputs.push_back({output.name, std::move(value)});
    }
    for (const ir::Mutation& mutation : source().mutations)
      target().mutations.push_back(
          {stored_value(value_of(mutation.buffer)), stored_value(value_of(mutation.value))});
    for (const ir::Assumption& assumption : source().assumptions) {
      const ir::Place& place = source().place(assumption.place);
      target().assumptions.push_back({value_of(assumption.value), assumption.expected,
                                      target().add_place(place.where, place.module_path),
                                      assumption.what});
    }
    drop_pair_views();
  }

 private:
  ir::ValueId as_read(ir::ValueId stored, const ir::TensorType& type) {
    return is_complex(type.dtype) ? emitter().from_pairs(stored) : stored;
  }

  std::unordered_set<std::uint32_t> state_;
};

}  // namespace modelport::passes
