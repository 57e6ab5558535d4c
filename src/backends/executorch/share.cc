#include "backends/executorch/share.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "backends/executorch/kernels.h"
#include "backends/executorch/lifetimes.h"

namespace modelport::executorch {
namespace {

bool is_elementwise_call(const Method& method, const Instruction& instruction) {
  return instruction.kind == Instruction::Kind::kernel && instruction.results.size() == 1 &&
         is_elementwise(method.operators[instruction.callee]);
}

bool same_type(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

/// Whether every operand of the instruction that lies in the storage has the result's type, so that
/// each element is read before it is written.
bool reads_alike(const Method& method, const Instruction& instruction, std::size_t storage) {
  const Tensor& result = method.tensor(instruction.results[0]);
  bool alike = true;
  for_each_tensor(method, instruction.args, [&](Index index) {
    const Tensor& tensor = method.tensor(index);
    if (tensor.storage == storage && !same_type(tensor, result)) alike = false;
  });
  return alike;
}

void move_tensors(Method& method, std::span<const std::size_t> new_home) {
  for (MethodValue& value : method.values) {
    if (Tensor* tensor = std::get_if<Tensor>(&value)) tensor->storage = new_home[tensor->storage];
  }
}

/// Whether the new value can be computed right in the state.
bool fits_in_place(const Method& method, const StateWrite& write,
                   const std::vector<Lifetime>& needed) {
  const std::size_t from = method.tensor(write.value).storage;
  const std::size_t to = method.tensor(write.state).storage;
  const Lifetime& value = needed[from];
  const Lifetime& state = needed[to];
  if (method.storages[from].kind != Storage::Kind::activation || value.begin == 0 ||
      value.begin == SIZE_MAX || method.storages[from].bytes != method.storages[to].bytes ||
      method.tensor(write.value).is_dynamic())
    return false;
  if (state.begin == SIZE_MAX || state.end < value.begin) return true;
  if (state.end > value.begin) return false;
  const Instruction& instruction = method.instructions[value.begin - 1];
  return is_elementwise_call(method, instruction) &&
         method.tensor(instruction.results[0]).storage == from &&
         same_type(method.tensor(instruction.results[0]), method.tensor(write.state)) &&
         reads_alike(method, instruction, to);
}

/// The storage of an operand that ends with this instruction, and that the result fits in.
std::size_t storage_to_reuse(const Method& method, const Instruction& instruction,
                             const std::vector<Lifetime>& needed, std::size_t step) {
  const Tensor& result = method.tensor(instruction.results[0]);
  std::size_t found = SIZE_MAX;
  for_each_tensor(method, instruction.args, [&](Index index) {
    const Tensor& operand = method.tensor(index);
    const Storage& storage = method.storages[operand.storage];
    if (found == SIZE_MAX && operand.storage != result.storage &&
        storage.kind == Storage::Kind::activation && needed[operand.storage].end == step &&
        storage.bytes == method.storages[result.storage].bytes && same_type(operand, result) &&
        reads_alike(method, instruction, operand.storage))
      found = operand.storage;
  });
  return found;
}

}  // namespace

void write_state(Method& method) {
  std::vector<StateWrite> left = std::move(method.state_writes);
  std::vector<StateWrite> copies;
  while (!left.empty()) {
    const StateWrite write = left.back();
    left.pop_back();
    method.state_writes = left;  // what is not settled yet is read at the end
    method.state_writes.insert(method.state_writes.end(), copies.begin(), copies.end());
    if (!fits_in_place(method, write, lifetimes(method))) {
      copies.push_back(write);
      continue;
    }
    std::vector<std::size_t> new_home(method.storages.size());
    std::iota(new_home.begin(), new_home.end(), std::size_t{0});
    new_home[method.tensor(write.value).storage] = method.tensor(write.state).storage;
    move_tensors(method, new_home);
  }
  method.state_writes.clear();
  if (copies.empty()) return;
  const Index waits = method.add_value(false);
  for (auto write = copies.rbegin(); write != copies.rend(); ++write)
    method.call("aten::copy_", {write->state, write->value, waits, write->state}, {write->state});
}

void reuse_operands(Method& method) {
  std::vector<Lifetime> needed = lifetimes(method);
  std::vector<std::vector<Index>> tensors_in(method.storages.size());
  for (std::size_t i = 0; i < method.values.size(); ++i) {
    if (const Tensor* tensor = std::get_if<Tensor>(&method.values[i]))
      tensors_in[tensor->storage].push_back(static_cast<Index>(i));
  }
  for (std::size_t i = 0; i < method.instructions.size(); ++i) {
    const Instruction& instruction = method.instructions[i];
    if (!is_elementwise_call(method, instruction)) continue;
    const std::size_t from = method.tensor(instruction.results[0]).storage;
    const std::size_t step = i + 1;
    if (method.storages[from].kind != Storage::Kind::activation || needed[from].begin != step)
      continue;
    const std::size_t to = storage_to_reuse(method, instruction, needed, step);
    if (to == SIZE_MAX) continue;
    needed[to].end = needed[from].end;
    needed[from] = {};
    for (const Index index : tensors_in[from]) {
      std::get<Tensor>(method.values[static_cast<std::size_t>(index)]).storage = to;
      tensors_in[to].push_back(index);
    }
    tensors_in[from].clear();
  }
}

}  // namespace modelport::executorch
