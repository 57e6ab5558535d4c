// A total order over expressions by structure, which sums and choices are sorted by, and equality.
#include <bit>

#include "shape/expression.h"

namespace modelport::shape {

namespace detail {

namespace {

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

template <class T>
int order_lists(const std::vector<T>& a, const std::vector<T>& b) {
  if (const int by_size = three_way(a.size(), b.size())) return by_size;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const int by_item = order(a[i], b[i])) return by_item;
  }
  return 0;
}

template <class T>
int order_optional(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b) {
  if (a == b) return 0;
  if (!a || !b) return a ? 1 : -1;
  return order(*a, *b);
}

}  // namespace

int order(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return three_way(a.kind, b.kind);
  if (a.kind == Atom::Kind::symbol) return a.name.compare(b.name);
  if (const int by_operands = order_lists(a.operands, b.operands)) return by_operands;
  if (const int by_condition = order_optional(a.when, b.when)) return by_condition;
  return order_optional(a.real, b.real);
}

// Graded lexicographic. Division by leading terms relies on it: multiplying two monomials by a
// third keeps their order.
int order(const Monomial& a, const Monomial& b) {
  if (&a == &b) return 0;
  if (a.degree != b.degree) return three_way(b.degree, a.degree);
  const std::size_t shared = std::min(a.factors.size(), b.factors.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (const int by_atom = order(*a.factors[i].atom, *b.factors[i].atom)) return by_atom;
    if (a.factors[i].power != b.factors[i].power) {
      return three_way(b.factors[i].power, a.factors[i].power);
    }
  }
  return three_way(a.factors.size(), b.factors.size());
}

int order(const Int& a, const Int& b) {
  const Sum* x = sum_of(a);
  const Sum* y = sum_of(b);
  if (x == y) return x == nullptr ? three_way(constant_of(a), constant_of(b)) : 0;
  if (x == nullptr || y == nullptr) return x == nullptr ? 1 : -1;  // numbers last
  const std::size_t shared = std::min(x->terms.size(), y->terms.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (const int by = order(*x->terms[i].monomial, *y->terms[i].monomial)) return by;
    if (const int by = three_way(x->terms[i].coefficient, y->terms[i].coefficient)) return by;
  }
  if (const int by_size = three_way(x->terms.size(), y->terms.size())) return by_size;
  return three_way(x->constant, y->constant);
}

int order(const Real& a, const Real& b) {
  const Real::Node& x = a.node();
  const Real::Node& y = b.node();
  if (&x == &y) return 0;
  if (x.op != y.op) return three_way(x.op, y.op);
  // By bits, so that a NaN equals itself and -0.0 is not 0.0.
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  if (const int by_number = three_way(bits(x.number), bits(y.number))) return by_number;
  if (const int by_integer = order(x.integer, y.integer)) return by_integer;
  if (const int by_name = x.name.compare(y.name)) return by_name;
  if (const int by_operands = order_lists(x.operands, y.operands)) return by_operands;
  return order_optional(x.when, y.when);
}

int order(const Bool& a, const Bool& b) {
  const Bool::Node& x = a.node();
  const Bool::Node& y = b.node();
  if (&x == &y) return 0;
  if (x.op != y.op) return three_way(x.op, y.op);
  if (x.value != y.value) return three_way(x.value, y.value);
  if (x.compare != y.compare) return three_way(x.compare, y.compare);
  if (const int by_difference = order(x.difference, y.difference)) return by_difference;
  if (const int by_name = x.name.compare(y.name)) return by_name;
  if (const int by_reals = order_lists(x.reals, y.reals)) return by_reals;
  return order_lists(x.operands, y.operands);
}

}  // namespace detail

bool operator==(const Int& a, const Int& b) {
  const detail::Sum* x = detail::sum_of(a);
  const detail::Sum* y = detail::sum_of(b);
  if (x == y) return x != nullptr || detail::constant_of(a) == detail::constant_of(b);
  if (x == nullptr || y == nullptr || x->extent.hash != y->extent.hash) return false;
  return detail::order(a, b) == 0;
}

bool operator==(const Real& a, const Real& b) {
  if (&a.node() == &b.node()) return true;
  return a.node().extent.hash == b.node().extent.hash && detail::order(a, b) == 0;
}

bool operator==(const Bool& a, const Bool& b) {
  if (&a.node() == &b.node()) return true;
  return a.node().extent.hash == b.node().extent.hash && detail::order(a, b) == 0;
}

}  // namespace modelport::shape
