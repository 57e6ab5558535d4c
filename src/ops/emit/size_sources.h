// Where a size can be read from: which axis of which tensor has a symbol, alone or in an expression
// that can be solved for it. Every target asks the same; they differ in how a tensor is named
// (`Tensor`) and in the nodes that read and compute.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shape/linear.h"

namespace modelport::ops::emit {

template <class Tensor>
class SizeSources {
 public:
  struct Source {
    Tensor tensor;
    std::int64_t axis = 0;
    shape::Int size;  // of that axis, linear in the symbol
    bool alone() const { return size.as_symbol().has_value(); }
  };

  /// From here on the sizes of this tensor can be read.
  void learn_sizes(const Tensor& tensor, const std::vector<shape::Int>& shape) {
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      learn_size(tensor, static_cast<std::int64_t>(axis), shape[axis]);
  }
  /// From here on the symbol is known by other means than a size.
  void learn_number(std::string_view symbol) { numbers_.emplace(symbol); }

  bool knows(std::string_view symbol) const {
    const std::string name(symbol);
    return numbers_.contains(name) || sources_.contains(name);
  }
  /// nullptr for a symbol that is no size of a tensor.
  const Source* find(std::string_view symbol) const {
    const auto found = sources_.find(std::string(symbol));
    return found == sources_.end() ? nullptr : &found->second;
  }
  /// The axis that has exactly this size; nullptr where something has to be computed.
  const Source* find_alone(const shape::Int& size) const {
    const auto symbol = size.as_symbol();
    if (!symbol || numbers_.contains(std::string(*symbol))) return nullptr;
    const Source* source = find(*symbol);
    return source != nullptr && source->alone() ? source : nullptr;
  }

 private:
  void learn_size(const Tensor& tensor, std::int64_t axis, const shape::Int& size) {
    if (size.is_constant()) return;
    if (const auto symbol = size.as_symbol()) {
      // A size on its own beats one that has to be solved for.
      const Source source{tensor, axis, size};
      const auto [known, is_new] = sources_.try_emplace(std::string(*symbol), source);
      if (!is_new && !known->second.alone()) known->second = source;
      return;
    }
    std::set<std::string, std::less<>> symbols;
    shape::collect_symbols(size, symbols);
    for (const std::string& symbol : symbols) {
      if (!knows(symbol) && shape::linear_in(size, symbol))
        sources_.emplace(symbol, Source{tensor, axis, size});
    }
  }

  std::unordered_map<std::string, Source> sources_;
  std::unordered_set<std::string> numbers_;
};

}  // namespace modelport::ops::emit
