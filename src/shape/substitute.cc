// Replacing symbols, finding them, and solving for one.
#include <algorithm>

#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

class Substituter {
  using Kind = Atom::Kind;

 public:
  explicit Substituter(const Substitution& replacements, const Decide* decide = nullptr)
      : replacements_(replacements), decide_(decide) {
    for (const auto& [name, value] : replacements) mask_ |= symbol_bit(name);
  }

  Int of(const Int& x) const {
    if (is_untouched(extent_of(x))) return x;
    std::vector<Term> kept;
    Int replaced;
    for (const Term& term : terms_of(x)) {
      if (is_untouched(term.monomial->extent)) {
        kept.push_back(term);
      } else {
        Int value = term.coefficient;
        for (const Factor& factor : term.monomial->factors)
          value *= pow(of(factor.atom), factor.power);
        replaced += value;
      }
    }
    return replaced + from_terms(std::move(kept), constant_of(x));
  }

  Real of(const Real& x) const {
    using Op = Real::Op;
    const Real::Node& node = x.node();
    if (is_untouched(node.extent)) return x;
    if (node.op == Op::integer) return Real(of(node.integer));
    if (node.op == Op::select) {
      return Real::select(decided(of(*node.when)), of(node.operands[0]), of(node.operands[1]));
    }
    if (node.operands.size() == 1) return Real::unary(node.op, of(node.operands[0]));
    return Real::binary(node.op, of(node.operands[0]), of(node.operands[1]));
  }

  Bool of(const Bool& x) const {
    using Op = Bool::Op;
    const Bool::Node& node = x.node();
    if (is_untouched(node.extent)) return x;
    switch (node.op) {
      case Op::compare_int:
        return Bool::compare(node.compare, of(node.difference), Int(0));
      case Op::compare_real:
        return Bool::compare(node.compare, of(node.reals[0]), of(node.reals[1]));
      case Op::logical_and:
      case Op::logical_or: {
        const bool is_and = node.op == Op::logical_and;
        Bool result = is_and;
        for (const Bool& operand : node.operands) {
          result = is_and ? result && of(operand) : result || of(operand);
        }
        return result;
      }
      case Op::logical_not:
        return !of(node.operands[0]);
      case Op::constant:
      case Op::data:
        break;
    }
    return x;
  }

 private:
  Int of(const AtomRef& atom) const {
    const auto operand = [&](std::size_t i) { return of(atom->operands[i]); };
    switch (atom->kind) {
      case Kind::symbol: {
        const auto found = replacements_.find(atom->name);
        if (found != replacements_.end()) return found->second;
        break;
      }
      case Kind::floor_div:
        return floor_div(operand(0), operand(1));
      case Kind::min:
      case Kind::max: {
        Int result = operand(0);
        for (std::size_t i = 1; i < atom->operands.size(); ++i) {
          result = atom->kind == Kind::min ? min(result, operand(i)) : max(result, operand(i));
        }
        return without_beaten(std::move(result), atom->kind);
      }
      case Kind::select:
        return select(decided(of(*atom->when)), operand(0), operand(1));
      case Kind::floor:
        return floor(of(*atom->real));
      case Kind::ceil:
        return ceil(of(*atom->real));
      case Kind::trunc:
        return trunc(of(*atom->real));
      case Kind::round:
        return round(of(*atom->real));
    }
    return from_terms({{1, lone_monomial(atom)}}, 0);
  }

  bool is_untouched(const Extent& extent) const {
    return (extent.symbols & mask_) == 0 && !(decide_ != nullptr && extent.choices);
  }

  Bool decided(const Bool& condition) const {
    if (decide_ == nullptr) return condition;
    const auto known = (*decide_)(condition);
    return known ? Bool(*known) : condition;
  }

  /// A min or max without the operands that can never be the one.
  Int without_beaten(Int x, Kind kind) const {
    const Atom* atom = decide_ == nullptr ? nullptr : lone_atom(x);
    if (atom == nullptr || atom->kind != kind) return x;
    std::vector<Int> kept;
    for (const Int& operand : atom->operands) {
      const auto loses = [&](const Int& winner, const Int& loser) {
        const Compare op = kind == Kind::min ? Compare::le : Compare::ge;
        return (*decide_)(Bool::compare(op, winner, loser)) == true;
      };
      if (std::ranges::any_of(kept, [&](const Int& other) { return loses(other, operand); }))
        continue;
      std::erase_if(kept, [&](const Int& other) { return loses(operand, other); });
      kept.push_back(operand);
    }
    Int result = kept[0];
    for (const Int& operand : kept)
      result = kind == Kind::min ? min(result, operand) : max(result, operand);
    return result;
  }

  const Substitution& replacements_;
  const Decide* decide_ = nullptr;
  std::uint64_t mask_ = 0;
};

using Names = std::set<std::string, std::less<>>;

void collect(const Atom& atom, Names& into) {
  if (atom.kind == Atom::Kind::symbol) into.insert(atom.name);
  for (const Int& operand : atom.operands) collect_symbols(operand, into);
  if (atom.when) collect_symbols(*atom.when, into);
  if (atom.real) collect_symbols(*atom.real, into);
}

bool reads(const Int& x);

bool reads(const Real& x) {
  const Real::Node& node = x.node();
  return node.op == Real::Op::data || reads(node.integer) ||
         std::ranges::any_of(node.operands, [](const Real& operand) { return reads(operand); }) ||
         (node.when && reads_data(*node.when));
}

bool reads(const Atom& atom) {
  return std::ranges::any_of(atom.operands, [](const Int& operand) { return reads(operand); }) ||
         (atom.when && reads_data(*atom.when)) || (atom.real && reads(*atom.real));
}

bool reads(const Int& x) {
  return std::ranges::any_of(terms_of(x), [](const Term& term) {
    return std::ranges::any_of(term.monomial->factors,
                               [](const Factor& factor) { return reads(*factor.atom); });
  });
}

}  // namespace

Int substitute(const Int& x, const Substitution& replacements) {
  return Substituter(replacements).of(x);
}
Real substitute(const Real& x, const Substitution& replacements) {
  return Substituter(replacements).of(x);
}
Bool substitute(const Bool& x, const Substitution& replacements) {
  return Substituter(replacements).of(x);
}

Int detail::resolve(const Int& x, const Substitution& replacements, const Decide& decide) {
  return Substituter(replacements, &decide).of(x);
}
Real detail::resolve(const Real& x, const Substitution& replacements, const Decide& decide) {
  return Substituter(replacements, &decide).of(x);
}
Bool detail::resolve(const Bool& x, const Substitution& replacements, const Decide& decide) {
  return Substituter(replacements, &decide).of(x);
}

void collect_symbols(const Int& x, Names& into) {
  for (const Term& term : terms_of(x)) {
    for (const Factor& factor : term.monomial->factors) collect(*factor.atom, into);
  }
}

void collect_symbols(const Real& x, Names& into) {
  const Real::Node& node = x.node();
  if (node.extent.symbols == 0) return;
  collect_symbols(node.integer, into);
  for (const Real& operand : node.operands) collect_symbols(operand, into);
  if (node.when) collect_symbols(*node.when, into);
}

void collect_symbols(const Bool& x, Names& into) {
  const Bool::Node& node = x.node();
  if (node.extent.symbols == 0) return;
  collect_symbols(node.difference, into);
  for (const Real& real : node.reals) collect_symbols(real, into);
  for (const Bool& operand : node.operands) collect_symbols(operand, into);
}

bool detail::reads_data(const Bool& x) {
  const Bool::Node& node = x.node();
  return node.op == Bool::Op::data || reads(node.difference) ||
         std::ranges::any_of(node.reals, [](const Real& real) { return reads(real); }) ||
         std::ranges::any_of(node.operands, reads_data);
}

bool mentions(const Int& x, std::string_view symbol) {
  if ((extent_of(x).symbols & symbol_bit(symbol)) == 0) return false;
  Names names;
  collect_symbols(x, names);
  return names.contains(symbol);
}

std::optional<Int> solve_for(const Int& x, std::string_view symbol) {
  const Term* found = nullptr;
  for (const Term& term : terms_of(x)) {
    const Atom* atom = lone_atom(term);
    if (atom != nullptr && atom->kind == Atom::Kind::symbol && atom->name == symbol) found = &term;
  }
  if (found == nullptr || (found->coefficient != 1 && found->coefficient != -1))
    return std::nullopt;
  const Int rest = x - from_terms({*found}, 0);
  if (mentions(rest, symbol)) return std::nullopt;
  return found->coefficient == 1 ? -rest : rest;
}

bool has_only_positive_terms(const Int& x) {
  const auto positive = [](const Term& term) { return term.coefficient > 0; };
  return constant_of(x) >= 0 && std::ranges::all_of(terms_of(x), positive);
}

}  // namespace modelport::shape
