#include "backends/executorch/value_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "base/error.h"

namespace modelport::executorch {

template <class Key>
Index ValueTable::intern(std::map<Key, Index>& known, const Key& key, MethodValue value) {
  const auto [found, added] = known.try_emplace(key, Index{0});
  if (added) found->second = method_.add_value(std::move(value));
  return found->second;
}

Index ValueTable::null() {
  if (!null_) null_ = method_.add_value(Null{});
  return *null_;
}

Index ValueTable::literal(std::int64_t number) { return intern(ints_, number, number); }

Index ValueTable::literal(bool truth) { return intern(bools_, truth, truth); }

Index ValueTable::literal(double number) {
  return intern(doubles_, std::bit_cast<std::uint64_t>(number), number);
}

Index ValueTable::literal(const std::string& text) { return intern(strings_, text, text); }

Index ValueTable::list(const IntList& ints) { return intern(int_lists_, ints.items, ints); }

std::size_t ValueTable::add_storage(Storage storage) {
  method_.storages.push_back(storage);
  return method_.storages.size() - 1;
}

Index ValueTable::tensor(Tensor tensor) {
  const std::uint64_t bytes = byte_count(tensor.dtype, tensor.sizes);
  return tensor_in(add_storage({.bytes = bytes}), std::move(tensor));
}

Index ValueTable::tensor_in(std::size_t storage, Tensor tensor) {
  tensor.storage = storage;
  return method_.add_value(std::move(tensor));
}

std::uint64_t byte_count(Dtype dtype, const std::vector<std::int64_t>& sizes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  std::uint64_t bytes = byte_size(dtype);
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > INT32_MAX || __builtin_mul_overflow(bytes, size, &bytes) ||
        bytes > kMost)
      throw ExportError(
          {.code = Code::bad_graph,
           .what = fmt::format("a tensor of {}[{}] is more than a .pte file can have", name(dtype),
                               fmt::join(sizes, ", ")),
           .ways_out = {"give dynamic axes smaller bounds: dims={\"seq\": (1, 2048)}"}});
  }
  return bytes;
}

}  // namespace modelport::executorch
