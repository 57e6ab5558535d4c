#include "backends/executorch/lifetimes.h"

#include <algorithm>

namespace modelport::executorch {

std::vector<Lifetime> lifetimes(const Method& method) {
  std::vector<Lifetime> found(method.storages.size());
  std::size_t step = 0;
  const auto touch = [&](Index index) {
    Lifetime& lifetime = found[method.tensor(index).storage];
    lifetime.begin = std::min(lifetime.begin, step);
    lifetime.end = std::max(lifetime.end, step);
  };
  for_each_tensor(method, method.inputs, touch);
  for (const Instruction& instruction : method.instructions) {
    ++step;
    for_each_tensor(method, instruction.args, touch);
  }
  ++step;
  for (const StateWrite& write : method.state_writes) touch(write.value);
  for_each_tensor(method, method.outputs, touch);
  return found;
}

}  // namespace modelport::executorch
