// Numbers that are known at run time: a size is read from the tensor that has it, arithmetic on
// sizes becomes instructions, and each distinct number is computed once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/executorch/value_table.h"
#include "ir/graph.h"
#include "ops/emit/size_sources.h"
#include "shape/tree.h"

namespace modelport::executorch {

class RuntimeNumbers {
 public:
  explicit RuntimeNumbers(ValueTable& table) : table_(table) {}

  /// From here on the sizes of this tensor can be read.
  void learn_sizes(Index tensor, const std::vector<shape::Int>& shape) {
    sources_.learn_sizes(tensor, shape);
  }
  /// From here on this value is the number that the symbol stands for.
  void learn_number(const ir::ScalarType& symbol, Index value);

  Index integer(const shape::Int& x);
  Index real(const shape::Real& x);
  Index truth(const shape::Bool& x);

 private:
  struct Hash {
    std::size_t operator()(const shape::Int& x) const { return x.hash(); }
  };

  enum class Result { integer, number, truth };
  Index call(std::string_view kernel, std::vector<Index> args, Result result);
  Index symbol(const std::string& name);
  Index compute(const shape::Tree& tree, const shape::Int* whole);
  Index sum(const shape::Tree& tree);
  Index fold(std::string_view kernel, const std::vector<shape::Tree>& operands);
  Index remainder(const shape::Tree& tree);
  Index rounded(const shape::Tree& tree);
  Index select(const shape::Bool& when, Index a, Index b, Result result);
  Index as_int(const shape::Bool& x);
  Index real_function(const shape::Real::Node& node);
  Index extreme(const shape::Real::Node& node);
  Index through_tensors(std::string_view kernel, const std::vector<Index>& operands);

  ValueTable& table_;
  ops::emit::SizeSources<Index> sources_;
  std::unordered_map<std::string, Index> numbers_;
  std::unordered_map<shape::Int, Index, Hash> known_;
  std::map<std::pair<std::string, std::vector<Index>>, Index> computed_;
  std::unordered_map<std::string, Index> known_reals_;  // by their text
};

}  // namespace modelport::executorch
