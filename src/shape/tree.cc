#include "shape/tree.h"

#include <algorithm>

#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Op = Tree::Op;

Tree number_tree(std::int64_t number) { return Tree{.op = Op::number, .number = number}; }

Op op_of(Atom::Kind kind) {
  switch (kind) {
    case Atom::Kind::symbol:
      return Op::symbol;
    case Atom::Kind::floor_div:
      return Op::floor_div;
    case Atom::Kind::min:
      return Op::min;
    case Atom::Kind::max:
      return Op::max;
    case Atom::Kind::select:
      return Op::select;
    case Atom::Kind::floor:
      return Op::floor;
    case Atom::Kind::ceil:
      return Op::ceil;
    case Atom::Kind::trunc:
      return Op::trunc;
    case Atom::Kind::round:
      return Op::round;
  }
  __builtin_unreachable();
}

Tree atom_tree(const Atom& atom) {
  Tree result{.op = op_of(atom.kind), .name = atom.name, .when = atom.when, .real = atom.real};
  for (const Int& operand : atom.operands) result.operands.push_back(tree(operand));
  return result;
}

Tree product_tree(std::int64_t coefficient, std::vector<Tree> factors) {
  if (coefficient != 1) factors.insert(factors.begin(), number_tree(coefficient));
  if (factors.size() == 1) return std::move(factors[0]);
  return Tree{.op = Op::mul, .operands = std::move(factors)};
}

Tree term_tree(const Term& term) {
  std::vector<Tree> factors;
  for (const Factor& factor : term.monomial->factors) {
    Tree base = atom_tree(*factor.atom);
    if (factor.power == 1) {
      factors.push_back(std::move(base));
    } else {
      Tree power{.op = Op::pow, .number = factor.power};
      power.operands.push_back(std::move(base));
      factors.push_back(std::move(power));
    }
  }
  return product_tree(term.coefficient, std::move(factors));
}

bool is_negative(const Tree& x) {
  if (x.op == Op::mul) return is_negative(x.operands[0]);
  return x.op == Op::number && x.number < 0;
}

}  // namespace

Tree tree(const Int& x) {
  std::vector<Tree> operands;
  Int rest = x;
  std::vector<Tree> remainders;
  while (const auto part = find_mod(rest, false)) {
    Tree remainder{.op = Op::mod};
    remainder.operands.push_back(tree(part->dividend));
    remainder.operands.push_back(tree(part->divisor));
    std::vector<Tree> factors;
    factors.push_back(std::move(remainder));
    remainders.push_back(product_tree(part->times, std::move(factors)));
    rest = part->rest;
  }
  for (const Term& term : terms_of(rest)) operands.push_back(term_tree(term));
  for (Tree& remainder : remainders) operands.push_back(std::move(remainder));
  const std::int64_t constant = constant_of(rest);
  if (constant != 0 || operands.empty()) operands.push_back(number_tree(constant));
  std::ranges::stable_partition(operands,
                                [](const Tree& operand) { return !is_negative(operand); });
  if (operands.size() == 1) return std::move(operands[0]);
  return Tree{.op = Op::add, .operands = std::move(operands)};
}

}  // namespace modelport::shape
