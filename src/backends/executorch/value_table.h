// The value table of a method while it grows: equal literals and lists are one value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/executorch/method.h"

namespace modelport::executorch {

class ValueTable {
 public:
  explicit ValueTable(Method& method) : method_(method) {}

  Index null();
  Index literal(std::int64_t number);
  Index literal(bool truth);
  Index literal(double number);
  Index literal(const std::string& text);
  Index list(const IntList& ints);

  /// A place for a number that an instruction computes.
  Index slot_for_int() { return method_.add_value(std::int64_t{0}); }
  Index slot_for_double() { return method_.add_value(0.0); }
  Index slot_for_bool() { return method_.add_value(false); }

  /// A tensor with memory of its own.
  Index tensor(Tensor tensor);
  /// One that lies where another does.
  Index tensor_in(std::size_t storage, Tensor tensor);
  std::size_t add_storage(Storage storage);

  Method& method() { return method_; }

 private:
  template <class Key>
  Index intern(std::map<Key, Index>& known, const Key& key, MethodValue value);

  Method& method_;
  std::optional<Index> null_;
  std::map<std::int64_t, Index> ints_;
  std::map<bool, Index> bools_;
  std::map<std::uint64_t, Index> doubles_;  // by their bits: -0.0 is not 0.0
  std::map<std::string, Index> strings_;
  std::map<std::vector<Index>, Index> int_lists_;
};

/// The bytes of a tensor of these sizes; throws ExportError where 64 bits do not hold them.
std::uint64_t byte_count(Dtype dtype, const std::vector<std::int64_t>& sizes);

}  // namespace modelport::executorch
