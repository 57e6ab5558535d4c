// Symbolic numbers as trees, for the two notations a program uses: nodes that compute them, and
// sympy's text. The trees come from the text form of shape's expressions or from sympy's, and go to
// either.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shape/real.h"

namespace modelport::pt2 {

enum class SymKind : std::uint8_t { integer, real, boolean };

enum class SymOp : std::uint8_t {
  number,  // integer, real or boolean by kind
  symbol,
  neg,
  add,
  sub,
  mul,
  floor_div,
  mod,
  true_div,
  pow,
  min,
  max,
  select,  // condition, then, else
  floor,
  ceil,
  trunc,
  round,
  to_float,
  abs,
  sqrt,
  exp,
  log,
  log2,
  sin,
  cos,
  tan,
  tanh,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_not,
};

struct SymExpr {
  SymOp op = SymOp::number;
  SymKind kind = SymKind::integer;
  std::int64_t integer = 0;   // number of kind integer or boolean
  double real = 0;            // number of kind real
  std::string name;           // symbol
  std::vector<SymExpr> args;  // of every other operator
};

/// Kinds of the symbols that are not integers.
using SymKinds = std::map<std::string, SymKind, std::less<>>;

SymExpr integer_expr(std::int64_t value);
SymExpr real_expr(double value);
SymExpr boolean_expr(bool value);
SymExpr symbol_expr(std::string_view name, SymKind kind);
/// The kind follows from the operator and the arguments.
SymExpr make_expr(SymOp op, std::vector<SymExpr> args);

/// A fold of many operands in halves rather than one after the other. The tree of a thousand terms
/// is then ten deep: readers, sympy's among them, go through trees by recursion.
template <class Operand, class Combine>
Operand fold_in_halves(std::vector<Operand> operands, Combine combine) {
  while (operands.size() > 1) {
    std::vector<Operand> halves;
    for (std::size_t i = 0; i + 1 < operands.size(); i += 2)
      halves.push_back(combine(std::move(operands[i]), std::move(operands[i + 1])));
    if (operands.size() % 2 == 1) halves.push_back(std::move(operands.back()));
    operands = std::move(halves);
  }
  return std::move(operands.front());
}
/// As many operands are folded one after the other.
inline constexpr std::size_t kFewOperands = 8;

/// Trees of shape's expressions.
SymExpr to_tree(const shape::Int& x, const SymKinds& kinds);
SymExpr to_tree(const shape::Real& x, const SymKinds& kinds);
SymExpr to_tree(const shape::Bool& x, const SymKinds& kinds);

/// And back. Throws ExportError where an operator does not fit the kind that is asked for.
shape::Int to_int(const SymExpr& x);
shape::Real to_real(const SymExpr& x);
shape::Bool to_bool(const SymExpr& x);

/// One line that is the same for the same tree.
std::string key_of(const SymExpr& x);

/// How an operator is called in shape's text form ("" where it is an infix operator) and in
/// sympy's.
struct SymOpFacts {
  SymOp op;
  std::string_view text;
  std::string_view sympy;
};
const SymOpFacts& facts_of(SymOp op);
const SymOpFacts* find_by_text(std::string_view text);
const SymOpFacts* find_by_sympy(std::string_view name);

/// Parses Python's notation ("2*batch*seq + seq//2 - 1", "float(seq)**-0.5", "seq >= 2 and batch !=
/// 1"), in which shape prints. Throws ExportError (Code::bad_text).
SymExpr parse_sym(std::string_view text, const SymKinds& kinds);

}  // namespace modelport::pt2
