// Guards: what the example run decided becomes part of what is known.
#include <fmt/format.h>

#include <algorithm>

#include "shape/dims.h"
#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Effect = Guard::Effect;

/// coefficient * symbol + constant
struct OneSymbol {
  std::string_view name;
  std::int64_t coefficient = 1;
  std::int64_t constant = 0;
};

std::optional<OneSymbol> as_one_symbol(const Int& x) {
  if (terms_of(x).size() != 1) return std::nullopt;
  const Term& term = terms_of(x)[0];
  const Atom* atom = lone_atom(term);
  if (atom == nullptr || atom->kind != Atom::Kind::symbol) return std::nullopt;
  return OneSymbol{atom->name, term.coefficient, constant_of(x)};
}

}  // namespace

bool Dims::settle(const Bool& condition, const Place& place) {
  const bool truth = hint(condition);
  const Bool known = simplify(condition);
  if (const auto decided = decide_simplified(known)) {
    if (*decided != truth) {
      throw InternalError(fmt::format("'{}' was taken to be {} but is not in the example",
                                      print(condition), *decided));
    }
    return truth;
  }
  const Bool holds = truth ? known : !known;
  meet(holds, place);
  const bool equality =
      holds.node().op == Bool::Op::compare_int && holds.node().compare == Compare::eq;
  if (!trial_ || (equality && truth) || depends_on_data(holds))
    record(holds, {.place = &place, .guard = std::nullopt});
  return truth;
}

void Dims::meet(const Bool& condition, const Place& place) {
  if (!met_hashes_.insert(condition.node().extent.hash).second) {
    for (const Guard& known : met_) {
      if (known.condition == condition) return;
    }
  }
  met_.push_back({condition, Effect::kept, place.where, place.module_path});
}

void Dims::settle_true(const Bool& condition, const Cause& cause) {
  const Bool known = simplify(condition);
  if (!decide_simplified(known)) record(known, cause);
}

std::size_t Dims::note(const Bool& condition, Effect effect, const Cause& cause) {
  if (cause.guard) {
    guards_[*cause.guard].effect = effect;
    return *cause.guard;
  }
  guards_.push_back({condition, effect, cause.place->where, cause.place->module_path});
  return guards_.size() - 1;
}

void Dims::record(const Bool& condition, const Cause& cause) {
  const Bool::Node& node = condition.node();
  switch (node.op) {
    case Bool::Op::logical_and:
      for (const Bool& operand : node.operands) settle_true(operand, cause);
      return;
    case Bool::Op::logical_or:
      for (const Bool& operand : node.operands) {
        if (!hint(operand)) continue;
        settle_true(operand, cause);
        return;
      }
      throw InternalError("no part of a true disjunction is true");
    case Bool::Op::compare_int:
      if (node.compare == Compare::eq) return record_equal(node.difference, cause);
      if (node.compare == Compare::ne) return record_unequal(node.difference, cause);
      return record_bound(node.difference, cause);
    case Bool::Op::constant:
      return;
    case Bool::Op::compare_real:
    case Bool::Op::logical_not:
    case Bool::Op::data:
      break;
  }
  facts_.push_back({condition, note(condition, Effect::kept, cause)});
}

// Data symbols before inputs, whose sizes must not depend on what is computed later; and of them
// the latest, so that no symbol is replaced by one that does not exist yet where it is used. Of
// inputs, one that comes out as a sum (total as past + seq), else the one declared last.
std::optional<std::string> Dims::symbol_to_replace(const Int& difference) const {
  std::set<std::string, std::less<>> names;
  collect_symbols(difference, names);
  std::vector<const Dim*> dims;
  for (const std::string& name : names) {
    if (const Dim* known = find(name)) dims.push_back(known);
  }
  std::ranges::sort(dims, std::greater<>());  // dims_ is in order of declaration
  const auto data = std::ranges::find_if(dims, [](const Dim* d) { return d->from_data; });
  if (data != dims.end()) {
    return solve_for(difference, (*data)->name) ? std::optional((*data)->name) : std::nullopt;
  }
  std::optional<std::string> latest;
  for (const Dim* candidate : dims) {
    const auto solution = solve_for(difference, candidate->name);
    if (!solution) continue;
    if (has_only_positive_terms(*solution)) return candidate->name;
    if (!latest) latest = candidate->name;
  }
  return latest;
}

void Dims::record_equal(const Int& difference, const Cause& cause) {
  const Bool condition = Bool::compare(Compare::eq, without_positive_factors(difference), 0);
  if (condition.constant()) return;
  const Int& core = condition.node().difference;
  const auto name = symbol_to_replace(core);
  if (!name) {
    // What cannot be above zero is zero where it is not below: min(n, 3) == 3 is n >= 3.
    const Range possible = bounds(core, ranges_);
    if (possible.hi == 0 && record_parts(core, cause)) return;
    if (possible.lo == 0 && record_parts(-core, cause)) return;
    facts_.push_back({condition, note(condition, Effect::kept, cause)});
    return;
  }
  const Int value = *solve_for(core, *name);
  const std::size_t guard =
      note(condition, value.is_constant() ? Effect::pinned : Effect::unified, cause);
  replace(*name, value, guard);
  use_facts_again();
}

void Dims::replace(const std::string& name, const Int& value, std::size_t guard) {
  const Substitution one{{name, value}};
  for (auto& [other, replacement] : replacements_) replacement = substitute(replacement, one);
  replacements_.insert_or_assign(name, value);
  replaced_bits_ |= symbol_bit(name);
  const Range range = dim(name).range;
  if (const auto number = value.constant()) {
    set_range(name, {*number, *number});
    return;
  }
  if (const auto other = value.as_symbol()) {
    const Range both = intersect(range, dim(*other).range);
    Dim& stays = dims_[index_.find(*other)->second];
    if (both.lo > stays.range.lo) stays.lo_where = dim(name).lo_where;
    if (both.hi < stays.range.hi) stays.hi_where = dim(name).hi_where;
    set_range(name, both);
    set_range(*other, both);
    if (both.lo == both.hi) replace(std::string(*other), both.lo, guard);
    return;
  }
  // The value must stay where the symbol had to be.
  const Place place{guards_[guard].where, guards_[guard].module_path};
  const Cause cause{.place = &place, .guard = std::nullopt};
  const Range possible = bounds(value, ranges_);
  if (range.lo > possible.lo) settle_true(Bool::compare(Compare::ge, value, range.lo), cause);
  if (range.hi < possible.hi)
    settle_true(Bool::compare(Compare::le, simplify(value), range.hi), cause);
}

void Dims::record_unequal(const Int& difference, const Cause& cause) {
  const Int core = without_positive_factors(difference);
  const Range possible = bounds(core, ranges_);
  if (possible.lo == 0) return record_bound(core - 1, cause);
  if (possible.hi == 0) return record_bound(Int(-1) - core, cause);
  const Bool condition = Bool::compare(Compare::ne, core, 0);
  facts_.push_back({condition, note(condition, Effect::kept, cause)});
}

void Dims::record_bound(const Int& difference, const Cause& cause) {
  const Bool condition = Bool::compare(Compare::ge, difference, 0);
  if (condition.constant()) return;
  const Int& core = condition.node().difference;
  if (bounds(core, ranges_).hi == 0) return record_equal(core, cause);
  if (const auto one = as_one_symbol(core); one && index_.contains(one->name)) {
    Range range;
    if (one->coefficient > 0) {
      range.lo = checked_neg(checked_floor_div(one->constant, one->coefficient));
    } else {
      range.hi = checked_floor_div(one->constant, checked_neg(one->coefficient));
    }
    return narrow(one->name, range, condition, cause);
  }
  if (record_parts(core, cause)) return;
  // a >= b after b >= a: they are equal.
  const Bool opposite = Bool::compare(Compare::ge, -core, 0);
  for (const Fact& fact : facts_) {
    if (fact.condition == opposite) return record_equal(core, cause);
  }
  facts_.push_back({condition, note(condition, Effect::kept, cause)});
}

/// A bound that says the same as bounds on its parts: min(a, b) >= c, or a*b >= 1 where neither is
/// negative.
bool Dims::record_parts(const Int& difference, const Cause& cause) {
  for (const Term& term : terms_of(difference)) {
    const Atom* atom = lone_atom(term);
    if (atom == nullptr) continue;
    const bool splits = atom->kind == (term.coefficient > 0 ? Atom::Kind::min : Atom::Kind::max);
    if (!splits) continue;
    const Int rest = difference - from_terms({term}, 0);
    for (const Int& operand : atom->operands) {
      settle_true(Bool::compare(Compare::ge, rest + operand * term.coefficient, 0), cause);
    }
    return true;
  }
  if (terms_of(difference).size() != 1 || constant_of(difference) != -1) return false;
  const Term& term = terms_of(difference)[0];
  if (term.coefficient != 1 || term.monomial->degree == 1) return false;
  std::vector<Int> factors;
  for (const Factor& factor : term.monomial->factors) {
    factors.push_back(from_terms({{1, lone_monomial(factor.atom)}}, 0));
    if (bounds(factors.back(), ranges_).lo < 0) return false;
  }
  for (const Int& factor : factors) settle_true(Bool::compare(Compare::ge, factor, 1), cause);
  return true;
}

void Dims::narrow(std::string_view name, const Range& range, const Bool& condition,
                  const Cause& cause) {
  const Range both = intersect(dim(name).range, range);
  const bool pins = both.lo == both.hi;
  const std::size_t guard = note(condition, pins ? Effect::pinned : Effect::bounded, cause);
  Dim& narrowed = dims_[index_.find(name)->second];
  if (both.lo > narrowed.range.lo) narrowed.lo_where = guards_[guard].where;
  if (both.hi < narrowed.range.hi) narrowed.hi_where = guards_[guard].where;
  set_range(name, both);
  if (pins) replace(std::string(name), both.lo, guard);
  use_facts_again();
}

// A fact may have become a bound or an equation of one symbol; what it came from then is more than
// kept. Facts that follow from the ranges by now are dropped.
void Dims::use_facts_again() {
  std::vector<Fact> before;
  std::swap(before, facts_);
  for (const Fact& fact : before) {
    settle_true(fact.condition, {.place = nullptr, .guard = fact.guard});
  }
  for (const Fact& fact : facts_)
    guards_[fact.guard].effect = Effect::kept;  // a part of it still is
  for (const auto& [name, value] : replacements_) {
    set_range(name, intersect(dim(name).range, bounds(value, ranges_)));
  }
}

}  // namespace modelport::shape
