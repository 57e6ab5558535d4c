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

/// The same for the operands of `x`, if it is such a choice itself.
void take_all(std::vector<Int>& operands, const Int& x, Kind kind) {
  const Atom* atom = lone_atom(x);
  if (atom == nullptr || atom->kind != kind) return take(operands, x, kind);
  for (const Int& operand : atom->operands) take(operands, operand, kind);
}

/// Numbers that "to the end" is made of stay where they are: sums with them overflow.
bool is_small(std::int64_t number) { return number > INT32_MIN && number < INT32_MAX; }

/// What `x` is the max of, by the choice in this term of it: a - min(b, c) is max(a - b, a - c).
/// Nothing where the term makes it no max.
std::vector<Int> open(const Int& x, const Term& term, Kind kind) {
  const Atom* atom = lone_atom(term);
  if (atom == nullptr) return {};
  const Kind opens = (kind == Kind::max) == (term.coefficient > 0) ? Kind::max : Kind::min;
  const auto has_small_number = [](const Int& y) { return is_small(constant_of(y)); };
  if (atom->kind != opens || !is_small(term.coefficient) || !has_small_number(x) ||
      !std::ranges::all_of(atom->operands, has_small_number))
    return {};
  const Int rest = x - from_terms({term}, 0);
  std::vector<Int> parts;
  for (const Int& operand : atom->operands) parts.push_back(rest + operand * term.coefficient);
  return parts;
}

/// Opens an operand where the others then beat a part of it, so that there are no more operands
/// than before: max(0, n - 6 - min(n - 4, 0)), a slice of a slice, is max(0, n - 6).
bool open_one(std::vector<Int>& operands, Kind kind) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!extent_of(operands[i]).choices) continue;
    for (const Term& term : terms_of(operands[i])) {
      std::vector<Int> fewer;
      for (const Int& part : open(operands[i], term, kind)) take_all(fewer, part, kind);
      if (fewer.empty()) continue;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (k != i) take(fewer, operands[k], kind);
      }
      if (fewer.size() > operands.size()) continue;
      operands = std::move(fewer);
      return true;
    }
  }
  return false;
}

Int choose(const Int& a, const Int& b, Kind kind) {
  // "To the end" in a slice is min(size, 2**63 - 1).
  const Int neutral = kind == Kind::min ? INT64_MAX : INT64_MIN;
  if (a == neutral) return b;
  if (b == neutral) return a;
  std::vector<Int> operands;
  for (const Int* side : {&a, &b}) take_all(operands, *side, kind);
  while (operands.size() > 1 && open_one(operands, kind)) {
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
