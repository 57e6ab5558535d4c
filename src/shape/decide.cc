// What follows about a condition from its form, the ranges of symbols, and facts kept from earlier
// guards.
#include <algorithm>

#include "shape/dims.h"
#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Kind = Atom::Kind;

// Steps of relaxation before giving up: conditions that models ask need one or two.
constexpr int kBudget = 16;

std::optional<bool> negated(std::optional<bool> known) {
  if (!known) return known;
  return !*known;
}

std::optional<bool> compare_ranges(Compare op, const RealRange& a, const RealRange& b) {
  switch (op) {
    case Compare::lt:
      if (a.hi < b.lo) return true;
      if (a.lo >= b.hi) return false;
      return std::nullopt;
    case Compare::le:
      if (a.hi <= b.lo) return true;
      if (a.lo > b.hi) return false;
      return std::nullopt;
    case Compare::gt:
      return compare_ranges(Compare::lt, b, a);
    case Compare::ge:
      return compare_ranges(Compare::le, b, a);
    case Compare::eq:
    case Compare::ne:
      if (a.hi < b.lo || b.hi < a.lo) return op == Compare::ne;
      return std::nullopt;
  }
  __builtin_unreachable();
}

bool shares_symbols(const Int& a, const Int& b) {
  return (extent_of(a).symbols & extent_of(b).symbols) != 0;
}

}  // namespace

std::optional<bool> Dims::decide(const Bool& condition) const {
  if (const auto known = condition.constant()) return known;
  return decide_simplified(simplify(condition));
}

std::optional<bool> Dims::decide_simplified(const Bool& condition) const {
  const Bool::Node& node = condition.node();
  std::optional<bool> known;
  switch (node.op) {
    case Bool::Op::constant:
      return node.value;
    case Bool::Op::compare_int:
      known = decide_comparison(node.compare, node.difference);
      break;
    case Bool::Op::compare_real:
      known = compare_ranges(node.compare, detail::bounds(node.reals[0], ranges_),
                             detail::bounds(node.reals[1], ranges_));
      break;
    case Bool::Op::logical_and:
    case Bool::Op::logical_or: {
      const bool is_and = node.op == Bool::Op::logical_and;
      known = is_and;
      for (const Bool& operand : node.operands) {
        const auto part = decide_simplified(operand);
        if (part == !is_and) return part;
        if (!part) known.reset();
      }
      break;
    }
    case Bool::Op::logical_not:
      known = negated(decide_simplified(node.operands[0]));
      break;
    case Bool::Op::data:
      break;
  }
  if (known || facts_.empty()) return known;
  const Bool opposite = !condition;
  for (const Fact& fact : facts_) {
    if (fact.condition == condition) return true;
    if (fact.condition == opposite) return false;
  }
  return std::nullopt;
}

std::optional<bool> Dims::decide_comparison(Compare op, const Int& difference) const {
  try {
    return prove_comparison(op, difference);
  } catch (const ExportError&) {
    return std::nullopt;  // numbers or terms beyond all bounds on the way: it is not known
  }
}

std::optional<bool> Dims::prove_comparison(Compare op, const Int& difference) const {
  int budget = kBudget;
  const Int x = reduced_by_facts(difference);
  if (op == Compare::ge) {
    if (proves_at_least_zero(x, budget)) return true;
    budget = kBudget;
    if (proves_at_least_zero(Int(-1) - x, budget)) return false;
    return std::nullopt;
  }
  const Int core = without_positive_factors(x);
  const bool equal = op == Compare::eq;
  if (const auto number = core.constant()) return (*number == 0) == equal;
  const Bool again =
      Bool::compare(Compare::eq, core, 0);  // a divisor that they share may settle it
  if (const auto known = again.constant()) return *known == equal;
  const Bool opposite = !again;
  for (const Fact& fact : facts_) {
    if (fact.condition == again) return equal;
    if (fact.condition == opposite) return !equal;
  }
  if (proves_at_least_zero(core - 1, budget)) return !equal;
  budget = kBudget;
  if (proves_at_least_zero(Int(-1) - core, budget)) return !equal;
  return std::nullopt;
}

Int Dims::reduced_by_facts(Int x) const {
  for (const Fact& fact : facts_) {
    const Bool::Node& node = fact.condition.node();
    if (node.op != Bool::Op::compare_int || node.compare != Compare::eq) continue;
    if (shares_symbols(node.difference, x)) x = remainder_of_polynomials(x, node.difference);
  }
  return x;
}

Int Dims::without_positive_factors(const Int& x) const {
  if (x.is_constant() || constant_of(x) != 0) return x;
  MonomialRef common = terms_of(x)[0].monomial;
  for (const Term& term : terms_of(x)) common = common_factors(common, term.monomial);
  Int result = x;
  for (const Factor& factor : common->factors) {
    const Int atom = from_terms({{1, lone_monomial(factor.atom)}}, 0);
    if (bounds(atom, ranges_).lo < 1) continue;
    for (std::int32_t i = 0; i < factor.power; ++i) result = *exact_quotient(result, atom);
  }
  return result;
}

Substitution Dims::lower_bounds(const Int& x) const {
  Substitution shifted;
  std::set<std::string, std::less<>> names;
  collect_symbols(x, names);
  for (const std::string& name : names) {
    const auto range = ranges_.find(name);
    if (range == ranges_.end() || range->second.lo == Range::kUnboundedBelow ||
        range->second.lo == 0)
      continue;
    shifted.emplace(name, Int::symbol(name) + range->second.lo);
  }
  return shifted;
}

bool Dims::proves_at_least_zero(const Int& x, int& budget) const {
  if (--budget < 0) return false;
  if (bounds(x, ranges_).lo >= 0) return true;
  if (x.is_constant()) return false;
  if (facts_give_at_least_zero(x)) return true;
  if (terms_of(x)[0].monomial->degree > 1) {
    // batch*seq - seq with both at least 1: measured from there, batch*seq + batch has no negative
    // term.
    const Substitution shift = lower_bounds(x);
    if (!shift.empty()) {
      Ranges from_zero = ranges_;
      for (const auto& [name, value] : shift) {
        Range& range = from_zero[name];
        if (range.hi != Range::kUnbounded) range.hi = checked_sub(range.hi, range.lo);
        range.lo = 0;
      }
      if (bounds(substitute(x, shift), from_zero).lo >= 0) return true;
    }
  }
  return relaxed_at_least_zero(x, budget);
}

bool Dims::facts_give_at_least_zero(const Int& x) const {
  for (const Fact& fact : facts_) {
    const Bool::Node& node = fact.condition.node();
    if (node.op != Bool::Op::compare_int || node.compare != Compare::ge) continue;
    if (shares_symbols(node.difference, x) && bounds(x - node.difference, ranges_).lo >= 0)
      return true;
  }
  return false;
}

// Replaces one atom by something that is not larger where it is added, not smaller where it is
// subtracted.
bool Dims::relaxed_at_least_zero(const Int& x, int& budget) const {
  for (const Term& term : terms_of(x)) {
    const Atom* atom = lone_atom(term);
    if (atom == nullptr) continue;
    const Int rest = x - from_terms({term}, 0);
    const bool added = term.coefficient > 0;
    const auto with = [&](const Int& operand) {
      return proves_at_least_zero(rest + operand * term.coefficient, budget);
    };
    if (atom->kind == Kind::min || atom->kind == Kind::max) {
      const bool any = added == (atom->kind == Kind::max);
      const bool holds = any ? std::ranges::any_of(atom->operands, with)
                             : std::ranges::all_of(atom->operands, with);
      if (holds) return true;
    } else if (atom->kind == Kind::floor_div && atom->operands[1].is_constant()) {
      // m*x >= bound and x whole: x >= 0 follows from bound > -m. And u - (m - 1) <= m*(u//m) <= u.
      const std::int64_t m = constant_of(atom->operands[1]);
      const Int u = added ? atom->operands[0] - (m - 1) : atom->operands[0];
      if (proves_at_least_zero(rest * m + u * term.coefficient + (m - 1), budget)) return true;
    }
  }
  return false;
}

}  // namespace modelport::shape
