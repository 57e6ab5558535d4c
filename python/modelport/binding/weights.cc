// The weights of a program as writers take them.
#include "binding/program.h"
#include "capture/torch_dtype.h"

namespace modelport::binding {

weights::WeightStore store_of(const Program& program) {
  weights::WeightStore store;
  for (const ir::ValueId id : program.graph.weights) {
    const std::string& name = program.graph.value(id).name;
    const auto found = program.weights.find(name);
    if (found == program.weights.end()) continue;
    auto dense = std::make_shared<at::Tensor>(found->second.detach().cpu().contiguous());
    const auto* bytes = static_cast<const std::byte*>(dense->const_data_ptr());
    weights::Weight weight{.name = name, .dtype = capture::from_torch(dense->scalar_type())};
    weight.shape.assign(dense->sizes().begin(), dense->sizes().end());
    weight.bytes = {bytes, dense->nbytes()};
    weight.keep_alive = dense;
    store.add_borrowed(std::move(weight));
  }
  return store;
}

}  // namespace modelport::binding
