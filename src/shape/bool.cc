// Symbolic conditions. Comparisons of integers are one of `d == 0`, `d != 0`, `d >= 0` with d
// divided by what its coefficients share; negation is pushed down to what cannot be negated.
#include <cmath>

#include "shape/expression.h"
#include "shape/python_arithmetic.h"

namespace modelport::shape {

using namespace detail;

Extent detail::extent_of(const Bool::Node& node) {
  Extent extent;
  const auto tag = static_cast<std::size_t>(node.op) * 8 + static_cast<std::size_t>(node.compare);
  extent.hash = mix(tag + 1001, node.value ? 2 : 1);
  extent.hash = mix(extent.hash, std::hash<std::string>{}(node.name));
  absorb(extent, extent_of(node.difference), 1);
  extent.hash = mix(extent.hash, node.difference.hash());
  for (const Real& real : node.reals) {
    absorb(extent, real.node().extent, 1);
    extent.hash = mix(extent.hash, real.node().extent.hash);
  }
  for (const Bool& operand : node.operands) {
    absorb(extent, operand.node().extent, 1);
    extent.hash = mix(extent.hash, operand.node().extent.hash);
  }
  return extent;
}

namespace {

std::shared_ptr<const Bool::Node> make_node(Bool::Node node) {
  node.extent = extent_of(node);
  return std::make_shared<const Bool::Node>(std::move(node));
}

std::int64_t divisor_of_terms(const Int& x) {
  std::int64_t divisor = 0;
  for (const Term& term : terms_of(x)) divisor = greatest_common_divisor(divisor, term.coefficient);
  return divisor;
}

/// The terms of x divided by what they share, plus `constant`.
Int shrink(const Int& x, std::int64_t divisor, std::int64_t constant) {
  std::vector<Term> terms(terms_of(x).begin(), terms_of(x).end());
  for (Term& term : terms) term.coefficient /= divisor;
  return from_terms(std::move(terms), constant);
}

/// `u//m + k >= 0` says u >= -k*m, and `k - u//m >= 0` says u <= k*m + m - 1: as a difference that
/// is >= 0.
std::optional<Int> without_division(const Int& x) {
  if (terms_of(x).size() != 1) return std::nullopt;
  const Term& term = terms_of(x)[0];
  const Atom* atom = lone_atom(term);
  if (atom == nullptr || atom->kind != Atom::Kind::floor_div) return std::nullopt;
  const auto divisor = atom->operands[1].constant();
  std::int64_t edge = 0;
  if (!divisor || __builtin_mul_overflow(constant_of(x), *divisor, &edge)) return std::nullopt;
  if (edge > INT64_MAX / 2 || edge < INT64_MIN / 2 || *divisor > INT64_MAX / 4) return std::nullopt;
  if (term.coefficient == 1) return atom->operands[0] + edge;
  if (term.coefficient == -1) return Int(edge + *divisor - 1) - atom->operands[0];
  return std::nullopt;
}

/// `x op number` for a number that need not be whole: decided by the number alone, or a comparison
/// of integers.
Bool compare_with_number(Compare op, const Int& x, double number) {
  if (std::isnan(number)) return Bool(op == Compare::ne);
  constexpr double kLimit = 4611686018427387904.0;  // 2**62: no size is beyond
  if (number >= kLimit) return Bool(op == Compare::ne || op == Compare::lt || op == Compare::le);
  if (number <= -kLimit) return Bool(op == Compare::ne || op == Compare::gt || op == Compare::ge);
  const auto below = static_cast<std::int64_t>(std::floor(number));
  const auto above = static_cast<std::int64_t>(std::ceil(number));
  switch (op) {
    case Compare::eq:
    case Compare::ne:
      if (below != above) return Bool(op == Compare::ne);
      return Bool::compare(op, x, Int(below));
    case Compare::lt:
      return Bool::compare(op, x, Int(above));
    case Compare::ge:
      return Bool::compare(op, x, Int(above));
    case Compare::le:
      return Bool::compare(op, x, Int(below));
    case Compare::gt:
      return Bool::compare(op, x, Int(below));
  }
  __builtin_unreachable();
}

Compare mirrored(Compare op) {
  switch (op) {
    case Compare::lt:
      return Compare::gt;
    case Compare::le:
      return Compare::ge;
    case Compare::gt:
      return Compare::lt;
    case Compare::ge:
      return Compare::le;
    default:
      return op;
  }
}

}  // namespace

Bool::Bool(bool value) {
  static const auto yes = make_node({.op = Op::constant, .value = true});
  static const auto no = make_node({.op = Op::constant, .value = false});
  // No owner: they live as long as the process, and truth values are not counted.
  node_ = std::shared_ptr<const Node>(std::shared_ptr<const Node>(), value ? yes.get() : no.get());
}

Bool Bool::compare(Compare op, const Int& a, const Int& b) {
  if (op == Compare::lt) return !compare(Compare::ge, a, b);
  if (op == Compare::gt) return !compare(Compare::ge, b, a);
  if (op == Compare::le) return compare(Compare::ge, b, a);
  // Every size is an int64, sums of them too: "up to the end" is known to be the end.
  if (op == Compare::ge && a.constant() == INT64_MAX) return true;
  std::int64_t apart = 0;
  if (__builtin_sub_overflow(constant_of(a), constant_of(b), &apart)) {
    // One side has a number such as 2**63 - 1, which stands for "to the end": no size comes near.
    return op == Compare::ge ? constant_of(a) > 0 : op == Compare::ne;
  }
  const Int difference = a - b;
  if (const auto number = difference.constant()) {
    if (op == Compare::ge) return *number >= 0;
    return (*number == 0) == (op == Compare::eq);
  }
  const std::int64_t shared = divisor_of_terms(difference);
  const std::int64_t constant = constant_of(difference);
  if (op == Compare::ge) {
    Int shrunk =
        shared == 1 ? difference : shrink(difference, shared, checked_floor_div(constant, shared));
    if (const auto inner = without_division(shrunk)) return compare(op, *inner, 0);
    return Bool(make_node({.op = Op::compare_int, .compare = op, .difference = std::move(shrunk)}));
  }
  if (constant % shared != 0) return op == Compare::ne;
  Int shrunk = shared == 1 ? difference : shrink(difference, shared, constant / shared);
  if (terms_of(shrunk)[0].coefficient < 0) shrunk = -shrunk;
  return Bool(make_node({.op = Op::compare_int, .compare = op, .difference = std::move(shrunk)}));
}

Bool Bool::compare(Compare op, const Real& a, const Real& b) {
  const auto x = a.constant();
  const auto y = b.constant();
  if (x && y) return python_compare(op, *x, *y);
  const auto left = as_integer(a);
  const auto right = as_integer(b);
  if (left && right) return compare(op, *left, *right);
  if (left && y) return compare_with_number(op, *left, *y);
  if (right && x) return compare_with_number(mirrored(op), *right, *x);
  return Bool(make_node({.op = Op::compare_real, .compare = op, .reals = {a, b}}));
}

Bool Bool::data(std::string_view name) {
  (void)Int::symbol(name);  // refuses names that could not be printed
  return Bool(make_node({.op = Op::data, .name = std::string(name)}));
}

namespace {

/// The operands of both, each once; nothing where one is the other's negation.
std::optional<std::vector<Bool>> joined(Bool::Op op, const Bool& a, const Bool& b) {
  std::vector<Bool> operands;
  const auto take = [&](const Bool& x) {
    const Bool opposite = !x;
    for (const Bool& other : operands) {
      if (other == x) return true;
      if (other == opposite) return false;
    }
    operands.push_back(x);
    return true;
  };
  for (const Bool* side : {&a, &b}) {
    if (side->node().op != op) {
      if (!take(*side)) return std::nullopt;
      continue;
    }
    for (const Bool& operand : side->node().operands) {
      if (!take(operand)) return std::nullopt;
    }
  }
  return operands;
}

}  // namespace

Bool operator&&(const Bool& a, const Bool& b) {
  if (const auto known = a.constant()) return *known ? b : a;
  if (const auto known = b.constant()) return *known ? a : b;
  auto operands = joined(Bool::Op::logical_and, a, b);
  if (!operands) return false;
  if (operands->size() == 1) return operands->front();
  return Bool(make_node({.op = Bool::Op::logical_and, .operands = std::move(*operands)}));
}

Bool operator||(const Bool& a, const Bool& b) {
  if (const auto known = a.constant()) return *known ? a : b;
  if (const auto known = b.constant()) return *known ? b : a;
  auto operands = joined(Bool::Op::logical_or, a, b);
  if (!operands) return true;
  if (operands->size() == 1) return operands->front();
  return Bool(make_node({.op = Bool::Op::logical_or, .operands = std::move(*operands)}));
}

Bool operator!(const Bool& a) {
  const Bool::Node& node = a.node();
  switch (node.op) {
    case Bool::Op::constant:
      return !node.value;
    case Bool::Op::compare_int:
      if (node.compare == Compare::ge)
        return Bool::compare(Compare::ge, Int(-1) - node.difference, 0);
      return Bool::compare(node.compare == Compare::eq ? Compare::ne : Compare::eq, node.difference,
                           0);
    case Bool::Op::compare_real:
      // Only these two: the negation of a < b is not a >= b where one is NaN.
      if (node.compare == Compare::eq)
        return Bool::compare(Compare::ne, node.reals[0], node.reals[1]);
      if (node.compare == Compare::ne)
        return Bool::compare(Compare::eq, node.reals[0], node.reals[1]);
      break;
    case Bool::Op::logical_and:
    case Bool::Op::logical_or: {
      const bool was_and = node.op == Bool::Op::logical_and;
      Bool result = !was_and ? Bool(true) : Bool(false);
      for (const Bool& operand : node.operands)
        result = was_and ? result || !operand : result && !operand;
      return result;
    }
    case Bool::Op::logical_not:
      return node.operands[0];
    case Bool::Op::data:
      break;
  }
  return Bool(make_node({.op = Bool::Op::logical_not, .operands = {a}}));
}

std::optional<bool> Bool::constant() const {
  if (node_->op != Op::constant) return std::nullopt;
  return node_->value;
}

}  // namespace modelport::shape
