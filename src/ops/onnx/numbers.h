// Symbolic numbers as ONNX values: a size is read from the tensor that has it, arithmetic on sizes
// becomes nodes, and each distinct number is computed once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "shape/tree.h"

namespace modelport::ops {

class Lower;

class LowerNumbers {
 public:
  explicit LowerNumbers(Lower& lower) : lower_(lower) {}

  /// From here on the sizes of this tensor can be read.
  void learn_sizes(ir::ValueId tensor, const std::vector<shape::Int>& shape);
  /// From here on this tensor of one element is the number that the symbol stands for.
  void learn_number(const ir::ScalarType& symbol, ir::ValueId tensor);
  bool knows(std::string_view symbol) const;

  ir::ValueId size(const shape::Int& x);                    // i64[1]
  ir::ValueId sizes(const std::vector<shape::Int>& shape);  // i64[n]
  ir::ValueId real(const shape::Real& x);                   // f64[1]
  ir::ValueId truth(const shape::Bool& x);                  // bool[1]

 private:
  struct Source {
    ir::ValueId tensor;
    std::int64_t axis = 0;
    shape::Int size;  // of that axis, linear in the symbol
  };
  struct Hash {
    std::size_t operator()(const shape::Int& x) const { return x.hash(); }
  };

  const Source* lone_source(const shape::Int& x) const;
  ir::ValueId read(ir::ValueId tensor, std::int64_t begin, std::int64_t end);
  ir::ValueId symbol(const std::string& name);
  ir::ValueId compute(const shape::Tree& tree, const shape::Int* whole);
  ir::ValueId sum(const shape::Tree& tree);
  ir::ValueId floor_division(const shape::Tree& dividend, const shape::Tree& divisor);
  ir::ValueId rounded(const shape::Tree& tree);
  ir::ValueId fold(std::string_view op, const std::vector<shape::Tree>& operands);

  Lower& lower_;
  std::unordered_map<std::string, Source> sources_;
  std::unordered_map<std::string, ir::ValueId> numbers_;  // i64[1], f64[1] or bool[1]
  std::unordered_map<shape::Int, ir::ValueId, Hash> known_;
};

}  // namespace modelport::ops
