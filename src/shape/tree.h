// A symbolic integer as a plain tree of operators, for those who write it in another notation: the
// printer, sympy strings in .pt2 files, nodes that compute a size.
#pragma once

#include "shape/int.h"
#include "shape/real.h"

namespace modelport::shape {

struct Tree {
  enum class Op {
    number,
    symbol,
    add,
    mul,
    pow,
    floor_div,
    mod,
    min,
    max,
    select,
    floor,
    ceil,
    trunc,
    round
  };
  Op op = Op::number;
  std::int64_t number = 0;     // number; pow: the exponent
  std::string name;            // symbol
  std::vector<Tree> operands;  // add, mul, min, max: two or more; pow: one; select: the two choices
  std::shared_ptr<const Bool> when;  // select
  std::shared_ptr<const Real> real;  // floor, ceil, trunc, round
};

/// Terms with a positive factor come first, and in a product the number, if there is one other
/// than 1.
Tree tree(const Int& x);

}  // namespace modelport::shape
