// min, max and select.
#include <algorithm>

#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Kind = Atom::Kind;

/// Takes `x` among the operands, unless one of them is always at least as good; drops those that it
/// beats.
void take(std::vector<Int>& operands, const Int& x, Kind kind) {
  const auto beats = [&](const Int& a, const Int& b) {
    if (constant_of(a) == constant_of(b) && a == b) return true;
    if (terms_of(a).size() != terms_of(b).size()) return false;
    const auto same = [](const Term& p, const Term& q) {
      return p.coefficient == q.coefficient && order(*p.monomial, *q.monomial) == 0;
    };
    if (!std::ranges::equal(terms_of(a), terms_of(b), same)) return false;
    return kind == Kind::min ? constant_of(a) <= constant_of(b) : constant_of(a) >= constant_of(b);
  };
  if (std::ranges::any_of(operands, [&](const Int& other) { return beats(other, x); })) return;
  std::erase_if(operands, [&](const Int& other) { return beats(x, other); });
  operands.push_back(x);
}

Int choose(const Int& a, const Int& b, Kind kind) {
  // "To the end" in a slice is min(size, 2**63 - 1).
  const Int neutral = kind == Kind::min ? INT64_MAX : INT64_MIN;
  if (a == neutral) return b;
  if (b == neutral) return a;
  std::vector<Int> operands;
  for (const Int* side : {&a, &b}) {
    const Atom* atom = lone_atom(*side);
    if (atom != nullptr && atom->kind == kind) {
      for (const Int& operand : atom->operands) take(operands, operand, kind);
    } else {
      take(operands, *side, kind);
    }
  }
  if (operands.size() == 1) return operands[0];
  std::ranges::sort(operands, [](const Int& x, const Int& y) { return order(x, y) < 0; });
  return from_atom(Atom{.kind = kind, .operands = std::move(operands)});
}

}  // namespace

Int min(const Int& a, const Int& b) { return choose(a, b, Kind::min); }
Int max(const Int& a, const Int& b) { return choose(a, b, Kind::max); }

Int select(const Bool& when, const Int& a, const Int& b) {
  if (const auto known = when.constant()) return *known ? a : b;
  if (a == b) return a;
  const Bool::Node& node = when.node();
  const bool negative = node.op == Bool::Op::logical_not ||
                        (node.op == Bool::Op::compare_int && node.compare == Compare::ne);
  if (negative) return select(!when, b, a);
  return from_atom(
      Atom{.kind = Kind::select, .operands = {a, b}, .when = std::make_shared<Bool>(when)});
}

}  // namespace modelport::shape
