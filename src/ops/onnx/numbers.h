// Symbolic numbers as ONNX values: a size is read from the tensor that has it (the emitter knows
// which), arithmetic on sizes becomes nodes, and each distinct number is computed once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "shape/tree.h"

namespace modelport::ops::onnx {

class Lower;

class Numbers {
 public:
  explicit Numbers(Lower& lower) : lower_(lower) {}

  /// From here on this tensor of one element is the number that the symbol stands for.
  void learn_number(const ir::ScalarType& symbol, ir::ValueId tensor);

  ir::ValueId size(const shape::Int& x);                    // i64[1]
  ir::ValueId sizes(const std::vector<shape::Int>& shape);  // i64[n]
  ir::ValueId real(const shape::Real& x);                   // f64[1]
  ir::ValueId truth(const shape::Bool& x);                  // bool[1]

 private:
  struct Hash {
    std::size_t operator()(const shape::Int& x) const { return x.hash(); }
  };

  ir::ValueId read(ir::ValueId tensor, std::int64_t begin, std::int64_t end);
  ir::ValueId symbol(const std::string& name);
  ir::ValueId compute(const shape::Tree& tree, const shape::Int* whole);
  ir::ValueId sum(const shape::Tree& tree);
  ir::ValueId floor_division(const shape::Tree& dividend, const shape::Tree& divisor);
  ir::ValueId rounded(const shape::Tree& tree);
  ir::ValueId fold(std::string_view op, const std::vector<shape::Tree>& operands);

  Lower& lower_;
  std::unordered_map<std::string, ir::ValueId> numbers_;  // i64[1], f64[1] or bool[1]
  std::unordered_map<shape::Int, ir::ValueId, Hash> known_;
};

}  // namespace modelport::ops::onnx
