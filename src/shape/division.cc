// Division with rounding, remainders, exact division. A remainder is stored as a - b*(a//b), so
// that padding code such as seq + (-seq) % 4 comes out as the multiple of four that it is.
#include <algorithm>

#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Kind = Atom::Kind;

std::int64_t divisor_of_terms(const Int& x) {
  std::int64_t divisor = 0;
  for (const Term& term : terms_of(x)) divisor = greatest_common_divisor(divisor, term.coefficient);
  return divisor;
}

Int divide_coefficients(const Int& x, std::int64_t divisor, std::int64_t constant) {
  std::vector<Term> terms(terms_of(x).begin(), terms_of(x).end());
  for (Term& term : terms) term.coefficient /= divisor;
  return from_terms(std::move(terms), constant);
}

/// floor(whole / divisor) = quotient + floor(rest / divisor)
struct Split {
  Int quotient;
  Int rest;
};

// Coefficients keep their sign (-x stays -x); the number added becomes 0 .. divisor-1.
Split split_by_number(const Int& a, std::int64_t divisor) {
  std::vector<Term> whole, rest;
  for (const Term& term : terms_of(a)) {
    const std::int64_t quotient = term.coefficient / divisor;
    const std::int64_t left = term.coefficient % divisor;
    if (quotient != 0) whole.push_back({quotient, term.monomial});
    if (left != 0) rest.push_back({left, term.monomial});
  }
  const std::int64_t constant = constant_of(a);
  return {from_terms(std::move(whole), checked_floor_div(constant, divisor)),
          from_terms(std::move(rest), floor_mod(constant, divisor))};
}

Split split_by_term(const Int& a, const Term& divisor) {
  std::vector<Term> whole, rest;
  for (const Term& term : terms_of(a)) {
    const std::int64_t quotient = divisor.coefficient == -1
                                      ? checked_neg(term.coefficient)
                                      : term.coefficient / divisor.coefficient;
    MonomialRef monomial = quotient == 0 ? nullptr : divide(term.monomial, divisor.monomial);
    if (monomial == nullptr) {
      rest.push_back(term);
      continue;
    }
    const std::int64_t left =
        checked_sub(term.coefficient, checked_mul(quotient, divisor.coefficient));
    whole.push_back({quotient, std::move(monomial)});
    if (left != 0) rest.push_back({left, term.monomial});
  }
  return {from_terms(std::move(whole), 0), from_terms(std::move(rest), constant_of(a))};
}

Int floor_div_atom(const Int& a, const Int& b) {
  return from_atom(Atom{.kind = Kind::floor_div, .operands = {a, b}});
}

/// The atom u//m where m is a number, if x is exactly that plus a number.
const Atom* division_by_number(const Int& x) {
  const Sum* sum = sum_of(x);
  if (sum == nullptr || sum->terms.size() != 1 || sum->terms[0].coefficient != 1) return nullptr;
  const Atom* atom = lone_atom(sum->terms[0]);
  const bool fits =
      atom != nullptr && atom->kind == Kind::floor_div && atom->operands[1].is_constant();
  return fits ? atom : nullptr;
}

// The divisor is at least 1.
Int floor_div_by_number(const Int& a, std::int64_t divisor) {
  if (divisor == 1) return a;
  auto [quotient, rest] = split_by_number(a, divisor);
  if (rest.is_constant()) return quotient;
  const std::int64_t shared = greatest_common_divisor(divisor_of_terms(rest), divisor);
  if (shared > 1) {
    rest = divide_coefficients(rest, shared, checked_floor_div(constant_of(rest), shared));
    divisor /= shared;
  }
  // One of (-x)//4 and -((x + 3)//4) has to be the form; the second also is what ceil_div looks
  // like elsewhere.
  const bool flip = terms_of(rest)[0].coefficient < 0;
  if (flip) rest = Int(divisor - 1) - rest;
  Int part;
  std::int64_t joined = 0;
  const Atom* inner = division_by_number(rest);
  if (inner != nullptr &&
      !__builtin_mul_overflow(constant_of(inner->operands[1]), divisor, &joined)) {
    // (u//m + k)//d = (u + k*m)//(m*d)
    const Int& m = inner->operands[1];
    part = floor_div_by_number(inner->operands[0] + m * constant_of(rest), joined);
  } else {
    const Range range = bounds(rest, {});
    const bool bounded = range.lo != Range::kUnboundedBelow && range.hi != Range::kUnbounded;
    const bool same =
        bounded && checked_floor_div(range.lo, divisor) == checked_floor_div(range.hi, divisor);
    part = same ? Int(checked_floor_div(range.lo, divisor)) : floor_div_atom(rest, divisor);
  }
  return flip ? quotient - part : quotient + part;
}

/// Divides what every term of both has in common out of both.
void cancel(Int& a, Int& b) {
  const std::int64_t shared = greatest_common_divisor(common_divisor(a), common_divisor(b));
  if (shared > 1) {
    a = divide_coefficients(a, shared, constant_of(a) / shared);
    b = divide_coefficients(b, shared, constant_of(b) / shared);
  }
  if (constant_of(a) != 0 || constant_of(b) != 0 || a.is_constant() || b.is_constant()) return;
  MonomialRef common = terms_of(a)[0].monomial;
  for (const Int* side : {&a, &b}) {
    for (const Term& term : terms_of(*side)) common = common_factors(common, term.monomial);
  }
  if (common->factors.empty()) return;
  for (Int* side : {&a, &b}) {
    std::vector<Term> terms;
    for (const Term& term : terms_of(*side)) {
      terms.push_back({term.coefficient, divide(term.monomial, common)});
    }
    *side = from_terms(std::move(terms), 0);
  }
}

}  // namespace

Int floor_div(const Int& a, const Int& b) {
  if (const auto divisor = b.constant()) {
    if (*divisor == 0) throw_arithmetic("division by zero: (" + print(a) + ")//0");
    if (const auto number = a.constant()) return checked_floor_div(*number, *divisor);
    return *divisor > 0 ? floor_div_by_number(a, *divisor)
                        : floor_div_by_number(-a, checked_neg(*divisor));
  }
  if (a == Int(0)) return 0;
  if (terms_of(b)[0].coefficient < 0) return floor_div(-a, -b);
  if (auto exact = exact_quotient(a, b)) return *exact;
  Int over = a;
  Int under = b;
  cancel(over, under);
  if (under.is_constant()) return floor_div(over, under);
  if (!is_single(*sum_of(under))) return floor_div_atom(over, under);
  const auto [quotient, rest] = split_by_term(over, terms_of(under)[0]);
  if (quotient == Int(0)) return floor_div_atom(over, under);
  return quotient + floor_div(rest, under);
}

Int mod(const Int& a, const Int& b) { return a - b * floor_div(a, b); }

Int ceil_div(const Int& a, const Int& b) { return -floor_div(-a, b); }

std::int64_t common_divisor(const Int& x) {
  return greatest_common_divisor(divisor_of_terms(x), constant_of(x));
}

namespace {

// Division by leading terms. Each step removes the leading term of what is left, so it ends;
// quotients of sizes have a few terms, hence the limit.
std::optional<Int> divide_polynomials(const Int& a, const Int& b) {
  constexpr int kMaxSteps = 256;
  const Term& lead = terms_of(b)[0];
  Int left = a;
  Int quotient;
  for (int step = 0; step < kMaxSteps && !left.is_constant(); ++step) {
    const Term& first = terms_of(left)[0];
    const bool negates = lead.coefficient == -1;
    if (negates ? first.coefficient == INT64_MIN : first.coefficient % lead.coefficient != 0) {
      return std::nullopt;
    }
    MonomialRef monomial = divide(first.monomial, lead.monomial);
    if (monomial == nullptr) return std::nullopt;
    const Int part = from_terms({{first.coefficient / lead.coefficient, std::move(monomial)}}, 0);
    quotient += part;
    left -= part * b;
  }
  if (left != Int(0)) return std::nullopt;
  return quotient;
}

}  // namespace

std::optional<Int> exact_quotient(const Int& a, const Int& b) {
  if (const auto divisor = b.constant()) {
    if (*divisor == 0) return std::nullopt;
    if (*divisor == -1) return -a;
    if (constant_of(a) % *divisor != 0) return std::nullopt;
    const auto fits = [&](const Term& term) { return term.coefficient % *divisor == 0; };
    if (!std::ranges::all_of(terms_of(a), fits)) return std::nullopt;
    return divide_coefficients(a, *divisor, constant_of(a) / *divisor);
  }
  try {
    return divide_polynomials(a, b);
  } catch (const ExportError&) {
    return std::nullopt;  // numbers or terms beyond all bounds on the way: it cannot be seen
  }
}

Int detail::remainder_of_polynomials(const Int& a, const Int& b) {
  if (b.is_constant()) return a;
  constexpr int kMaxSteps = 64;
  const Term lead = terms_of(b)[0];
  Int left = a;
  for (int step = 0; step < kMaxSteps; ++step) {
    const auto fits = [&](const Term& term) {
      return term.coefficient != INT64_MIN && term.coefficient % lead.coefficient == 0 &&
             divide(term.monomial, lead.monomial) != nullptr;
    };
    const auto found = std::ranges::find_if(terms_of(left), fits);
    if (found == terms_of(left).end()) break;
    left -=
        from_terms(
            {{found->coefficient / lead.coefficient, divide(found->monomial, lead.monomial)}}, 0) *
        b;
  }
  return left;
}

namespace {

// So that finding a remainder is far from any overflow.
bool is_tidy(const Int& x) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 30;
  const auto small = [](std::int64_t v) { return v < kLimit && v > -kLimit; };
  return small(constant_of(x)) && std::ranges::all_of(terms_of(x), [&](const Term& term) {
           return small(term.coefficient);
         });
}

/// Reads `term` of x as -times * divisor * (dividend//divisor), and takes times * dividend out of
/// the rest of x.
std::optional<ModPart> mod_at(const Int& x, const Term& term, const Atom& atom) {
  const Int& dividend = atom.operands[0];
  const Int& divisor = atom.operands[1];
  const Int whole = from_terms({term}, 0);
  const auto multiple = exact_quotient(whole, divisor);
  if (!multiple || terms_of(*multiple).size() != 1 || constant_of(*multiple) != 0)
    return std::nullopt;
  const Term& quotient = terms_of(*multiple)[0];
  if (lone_atom(quotient) == nullptr || order(*lone_atom(quotient), atom) != 0) return std::nullopt;
  const std::int64_t times = -quotient.coefficient;
  if (!is_tidy(dividend) || !is_tidy(divisor)) return std::nullopt;
  Int rest = x - whole - dividend * times;
  if (terms_of(rest).size() + 1 + terms_of(dividend).size() != terms_of(x).size())
    return std::nullopt;
  return ModPart{times, dividend, divisor, std::move(rest)};
}

}  // namespace

std::optional<ModPart> detail::find_mod(const Int& x, bool negative) {
  if (terms_of(x).size() < 2 || !is_tidy(x)) return std::nullopt;
  for (const Term& term : terms_of(x)) {
    for (const Factor& factor : term.monomial->factors) {
      if (factor.power != 1 || factor.atom->kind != Kind::floor_div) continue;
      auto found = mod_at(x, term, *factor.atom);
      if (found && (negative || found->times > 0)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace modelport::shape
