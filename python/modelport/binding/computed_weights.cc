// Weights that the model has not, and a program computes: tables of what depends on positions.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "binding/program.h"
#include "capture/torch_dtype.h"

namespace modelport::binding {

namespace {

/// What the store has of them, in the types that the program has.
capture::WeightTensors tensors_of(const ir::Graph& program, const weights::WeightStore& store) {
  capture::WeightTensors tensors;
  for (const ir::ValueId id : program.weights) {
    const ir::Value& value = program.value(id);
    const weights::Weight& weight = store.at(value.name);
    const weights::Contents held = weight.contents();
    const at::Tensor stored = at::from_blob(const_cast<std::byte*>(held.bytes.data()), weight.shape,
                                            at::dtype(capture::to_torch(weight.dtype)));
    tensors[value.name] = stored.to(capture::to_torch(value.tensor().dtype), false, true);
  }
  return tensors;
}

}  // namespace

void add_computed(const ir::Graph& program, weights::WeightStore& store) {
  const auto& positions = program.value(program.inputs[0]).tensor().shape;
  const std::vector<at::Tensor> inputs{
      at::arange(*positions[1].constant(), at::kLong).unsqueeze(0)};
  const capture::WeightTensors given = tensors_of(program, store);
  const capture::RunResult result = capture::run_graph({program, given, inputs});
  std::vector<at::Tensor> known;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    at::Tensor table = std::get<at::Tensor>(result.outputs[i]).contiguous();
    // Layers with weights of their own may have computed the same: writers store one memory once.
    const auto same = std::ranges::find_if(known, [&](const at::Tensor& other) {
      return other.scalar_type() == table.scalar_type() && at::equal(other, table);
    });
    if (same != known.end()) {
      table = *same;
    } else {
      known.push_back(table);
    }
    store.add_borrowed(in_memory(program.outputs[i].name, table));
  }
}

}  // namespace modelport::binding
