// How symbolic integers are stored: sums of products of atoms, immutable and shared. Private to
// this room.
#pragma once

#include <span>
#include <utility>

#include "shape/checked.h"
#include "shape/int.h"
#include "shape/real.h"

namespace modelport::shape {

namespace detail {

using AtomRef = std::shared_ptr<const Atom>;

struct Atom {
  enum class Kind : std::uint8_t { symbol, floor_div, min, max, select, floor, ceil, trunc, round };
  Kind kind = Kind::symbol;
  std::string name;                  // symbol
  std::vector<Int> operands;         // floor_div, select: two; min, max: all, sorted
  std::shared_ptr<const Bool> when;  // select
  std::shared_ptr<const Real> real;  // floor, ceil, trunc, round
  Extent extent;
};

struct Factor {
  AtomRef atom;
  std::int32_t power = 1;
};

struct Monomial {
  std::vector<Factor> factors;  // sorted by atom, no atom twice
  std::int32_t degree = 0;
  Extent extent;
};
using MonomialRef = std::shared_ptr<const Monomial>;

struct Term {
  std::int64_t coefficient = 1;  // not zero
  MonomialRef monomial;          // not empty
};

struct Sum {
  std::int64_t constant = 0;
  std::vector<Term> terms;  // at least one; highest degree first, then by atoms; no monomial twice
  Extent extent;
};

/// What no size in a model comes near; beyond it, working with an expression would take long or
/// exhaust the stack.
inline constexpr std::uint32_t kMaxWeight = 1 << 14;
inline constexpr std::uint16_t kMaxDepth = 120;
inline constexpr std::int32_t kMaxDegree = 1 << 10;

/// Counts `part` into `whole`, which holds it one level deeper.
void absorb(Extent& whole, const Extent& part, int levels);
std::size_t mix(std::size_t seed, std::size_t value);

/// Negative, zero or positive: a total order by structure (names, not addresses).
int order(const Atom& a, const Atom& b);
int order(const Monomial& a, const Monomial& b);
int order(const Int& a, const Int& b);
int order(const Real& a, const Real& b);
int order(const Bool& a, const Bool& b);

MonomialRef multiply(const MonomialRef& a, const MonomialRef& b);
/// a / b where b's factors are all in a: null if they are not; an empty monomial if nothing is
/// left.
MonomialRef divide(const MonomialRef& a, const MonomialRef& b);
/// The factors that both have; may be empty.
MonomialRef common_factors(const MonomialRef& a, const MonomialRef& b);

MonomialRef lone_monomial(AtomRef atom);
Int from_atom(Atom atom);
/// Terms in any order, monomials possibly repeated or empty, coefficients possibly zero.
Int from_terms(std::vector<Term> terms, std::int64_t constant);

/// The extent of a real or bool node from its parts.
Extent extent_of(const Real::Node& node);
Extent extent_of(const Bool::Node& node);

/// Whether floats or bools have a part in it: they are read from data, and no symbols.
bool reads_data(const Bool& x);

/// The integer expression that a real equals wherever doubles are exact: float(seq)*2.0 is 2*seq.
std::optional<Int> as_integer(const Real& x);

inline bool is_single(const Sum& sum) { return sum.terms.size() == 1 && sum.constant == 0; }
/// The atom, if the term is one atom to the first power.
inline const Atom* lone_atom(const Term& term) {
  const auto& factors = term.monomial->factors;
  return factors.size() == 1 && factors[0].power == 1 ? factors[0].atom.get() : nullptr;
}

inline std::uint64_t symbol_bit(std::string_view name) {
  return std::uint64_t{1} << (std::hash<std::string_view>{}(name) & 63);
}

/// A part `times * (dividend mod divisor)` of a sum, and the sum without it.
struct ModPart {
  std::int64_t times = 1;
  Int dividend;
  Int divisor;
  Int rest;
};
/// Finds u - m*(u//m), which is how a remainder is stored. With `negative`, also those with a
/// negative factor.
std::optional<ModPart> find_mod(const Int& x, bool negative);

/// a without the multiples of b's leading term that can be taken out: a - remainder is a multiple
/// of b.
Int remainder_of_polynomials(const Int& a, const Int& b);

/// Whether the condition is known to be true or false where an expression is used.
using Decide = std::function<std::optional<bool>(const Bool&)>;
/// Substitution that also resolves min, max and select where `decide` knows which operand counts.
Int resolve(const Int& x, const Substitution& replacements, const Decide& decide);
Real resolve(const Real& x, const Substitution& replacements, const Decide& decide);
Bool resolve(const Bool& x, const Substitution& replacements, const Decide& decide);

struct RealRange {
  double lo;
  double hi;
};
/// `least` is taken for the symbols without a range.
RealRange bounds(const Real& x, const Ranges& ranges, std::int64_t least = INT64_MIN);
/// For symbols that are sizes, hence not negative.
Range bounds_of_sizes(const Int& x);

}  // namespace detail

struct IntAccess {
  static Int make(std::shared_ptr<const detail::Sum> sum) { return Int(std::move(sum)); }
  /// Null for a plain number.
  static const detail::Sum* sum(const Int& x) { return x.sum_.get(); }
  static std::int64_t number(const Int& x) { return x.constant_; }
};

namespace detail {
inline const Sum* sum_of(const Int& x) { return IntAccess::sum(x); }
inline std::span<const Term> terms_of(const Int& x) {
  const Sum* sum = sum_of(x);
  return sum == nullptr ? std::span<const Term>() : std::span<const Term>(sum->terms);
}
/// The number added to the terms.
inline std::int64_t constant_of(const Int& x) {
  const Sum* sum = sum_of(x);
  return sum == nullptr ? IntAccess::number(x) : sum->constant;
}
inline const Extent& extent_of(const Int& x) {
  static constexpr Extent kNumber;
  const Sum* sum = sum_of(x);
  return sum == nullptr ? kNumber : sum->extent;
}
/// The atom, if x is exactly one atom.
inline const Atom* lone_atom(const Int& x) {
  const Sum* sum = sum_of(x);
  return sum != nullptr && is_single(*sum) && sum->terms[0].coefficient == 1
             ? lone_atom(sum->terms[0])
             : nullptr;
}
}  // namespace detail

}  // namespace modelport::shape
