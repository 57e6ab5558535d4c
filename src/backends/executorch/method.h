// One method of a program as the runtime executes it: a table of values, and instructions that name
// them by index. Tensors say which storage they lie in; `plan` gives storages their places.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "shape/int.h"

namespace modelport::executorch {

/// Into the value table of a method.
using Index = std::int32_t;

struct Null {
  bool operator==(const Null&) const = default;
};
struct Tensor {
  Dtype dtype = Dtype::f32;
  std::vector<shape::Int> shape = {};
  std::vector<std::int64_t> sizes = {};  // the upper bounds
  std::size_t storage = 0;
  /// Its pointer is that of another tensor, put there by an instruction.
  bool is_moved = false;
  bool is_dynamic() const;
};
/// The items are Int values, some of them computed at run time.
struct IntList {
  std::vector<Index> items;
};
struct DoubleList {
  std::vector<double> items;
};
struct BoolList {
  std::vector<bool> items;
};
struct TensorList {
  std::vector<Index> items;
};
/// -1 stands for None.
struct OptionalTensorList {
  std::vector<Index> items;
};
using MethodValue = std::variant<Null, std::int64_t, bool, double, std::string, Tensor, IntList,
                                 DoubleList, BoolList, TensorList, OptionalTensorList>;

/// Memory that one tensor, or several that share it, lie in.
struct Storage {
  enum class Kind {
    activation,  // in the arena, for as long as it is needed
    constant,    // among the program's constants
    state,       // kept from call to call
  };
  Kind kind = Kind::activation;
  std::size_t entry = 0;     // constant, state: which of the program's
  std::uint64_t bytes = 0;   // at the upper bounds
  std::uint64_t offset = 0;  // activation: in the arena, once planned
};

struct Instruction {
  enum class Kind { kernel, delegate };
  Kind kind = Kind::kernel;
  std::size_t callee = 0;      // into operators or delegates
  std::vector<Index> args;     // as the runtime wants them, results included
  std::vector<Index> results;  // the tensors among them that it writes
};

/// What is left of the graph's mutations: the state, and the tensor that it takes over at the end.
struct StateWrite {
  Index state = 0;
  Index value = 0;
};

struct Method {
  std::string name;
  std::vector<MethodValue> values;
  std::vector<Storage> storages;
  std::vector<Index> inputs;
  std::vector<Index> outputs;
  std::vector<std::string> operators;  // "aten::add.out"
  std::vector<std::size_t> delegates;  // which of the program's
  std::vector<Instruction> instructions;
  std::vector<StateWrite> state_writes;
  std::uint64_t arena_bytes = 0;
  std::map<std::string, std::int64_t> assumed_bounds;  // of sizes that data decides

  const Tensor& tensor(Index index) const {
    return std::get<Tensor>(values[static_cast<std::size_t>(index)]);
  }
  Storage& storage_of(Index index) { return storages[tensor(index).storage]; }
  const Storage& storage_of(Index index) const { return storages[tensor(index).storage]; }

  Index add_value(MethodValue value);
  /// A call of a kernel by its full name.
  void call(std::string_view kernel, std::vector<Index> args, std::vector<Index> results);
};

/// Calls `visit(Index)` for each tensor that the arguments name, in lists too.
template <class Visit>
void for_each_tensor(const Method& method, const std::vector<Index>& args, Visit&& visit) {
  for (const Index index : args) {
    if (index < 0) continue;
    const MethodValue& value = method.values[static_cast<std::size_t>(index)];
    if (std::holds_alternative<Tensor>(value)) visit(index);
    if (const auto* list = std::get_if<TensorList>(&value))
      for_each_tensor(method, list->items, visit);
    if (const auto* list = std::get_if<OptionalTensorList>(&value))
      for_each_tensor(method, list->items, visit);
  }
}

}  // namespace modelport::executorch
