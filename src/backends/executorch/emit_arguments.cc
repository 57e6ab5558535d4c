// What each kind of argument becomes. A value of the wrong kind ends the process that runs the
// file, so nothing is guessed.
#include <fmt/format.h>

#include <algorithm>

#include "backends/executorch/emitter.h"

namespace modelport::executorch {
namespace {

bool is_tensor(const ir::Graph& graph, const ir::Arg& arg) {
  const ir::ValueId* id = arg.get<ir::ValueId>();
  return id != nullptr && std::holds_alternative<ir::TensorType>(graph.value(*id).type);
}

}  // namespace

Index Emitter::argument(const ir::NamedArg& named) {
  if (const ir::ArgList* items = named.arg.get<ir::ArgList>()) return list(named, *items);
  return scalar_argument(named.arg);
}

Index Emitter::scalar_argument(const ir::Arg& arg) {
  if (arg.is_none()) return table_.null();
  if (const auto* id = arg.get<ir::ValueId>()) return value(*id);
  if (const auto* truth = arg.get<bool>()) return table_.literal(*truth);
  if (const auto* number = arg.get<shape::Int>()) return numbers_.integer(*number);
  if (const auto* number = arg.get<double>()) return table_.literal(*number);
  if (const auto* number = arg.get<shape::Real>()) return numbers_.real(*number);
  if (const auto* truth = arg.get<shape::Bool>()) return numbers_.truth(*truth);
  if (const auto* text = arg.get<std::string>()) return table_.literal(*text);
  if (const auto* dtype = arg.get<Dtype>()) return table_.literal(scalar_type(*dtype));
  throw InternalError("a list stands inside a list");
}

Index Emitter::list(const ir::NamedArg& named, const ir::ArgList& items) {
  const auto names_tensors = [&](const ir::Arg& item) {
    return item.is_none() || is_tensor(graph_, item);
  };
  if (std::ranges::any_of(items, names_tensors)) return tensor_list(named, items);
  return number_list(items);
}

/// Lists that may hold None are another kind of value, even where they hold none. In the schemas of
/// all kernels, `indices` is the only such list.
Index Emitter::tensor_list(const ir::NamedArg& named, const ir::ArgList& items) {
  std::vector<Index> indices;
  bool has_none = false;
  for (const ir::Arg& item : items) {
    if (!item.is_none() && !is_tensor(graph_, item))
      throw InternalError(fmt::format("{} has tensors and numbers in one list", named.name));
    has_none = has_none || item.is_none();
    indices.push_back(item.is_none() ? -1 : value(*item.get<ir::ValueId>()));
  }
  if (has_none || named.name == "indices")
    return method_.add_value(OptionalTensorList{std::move(indices)});
  return method_.add_value(TensorList{std::move(indices)});
}

Index Emitter::number_list(const ir::ArgList& items) {
  const auto all = [&](auto kind) {
    using Kind = decltype(kind);
    return !items.empty() && std::ranges::all_of(items, [](const ir::Arg& item) {
      return item.get<Kind>() != nullptr;
    });
  };
  if (all(double{})) {
    DoubleList list;
    for (const ir::Arg& item : items) list.items.push_back(*item.get<double>());
    return method_.add_value(std::move(list));
  }
  if (all(bool{})) {
    BoolList list;
    for (const ir::Arg& item : items) list.items.push_back(*item.get<bool>());
    return method_.add_value(std::move(list));
  }
  IntList list;
  for (const ir::Arg& item : items) {
    if (item.get<shape::Int>() == nullptr && item.get<ir::ValueId>() == nullptr)
      throw InternalError("a list has numbers of different kinds, or computed fractions");
    list.items.push_back(scalar_argument(item));
  }
  return table_.list(list);
}

}  // namespace modelport::executorch
