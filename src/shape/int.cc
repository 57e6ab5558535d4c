// Sums and products in canonical form.
#include "shape/int.h"

#include <algorithm>

#include "shape/expression.h"

template class std::vector<modelport::shape::Int>;

namespace modelport::shape {

namespace detail {

void throw_arithmetic(std::string what) {
  throw ExportError(Diagnostic{.code = Code::bad_input, .what = std::move(what)});
}

void throw_overflow() {
  throw_arithmetic("a size or an expression of sizes does not fit in 64 bits");
}

namespace {

[[noreturn]] void throw_too_large() {
  throw ExportError(Diagnostic{
      .code = Code::capture_failed,
      .what = "an expression of sizes became too large",
      .ways_out = {"make fewer axes dynamic: dynamic_shapes={...} with only those that vary"}});
}

// Empty monomials and products of several sums aside, what makes a term cheap is that its monomial
// is shared.
MonomialRef make_monomial(std::vector<Factor> factors) {
  auto monomial = std::make_shared<Monomial>();
  monomial->factors = std::move(factors);
  Extent& extent = monomial->extent;
  extent.weight = 0;
  extent.hash = 0;
  std::int64_t degree = 0;
  for (const Factor& factor : monomial->factors) {
    degree += factor.power;
    absorb(extent, factor.atom->extent, 0);
    extent.hash += mix(factor.atom->extent.hash, static_cast<std::size_t>(factor.power));
  }
  if (degree > kMaxDegree) throw_too_large();
  monomial->degree = static_cast<std::int32_t>(degree);
  return monomial;
}

Int make_sum(std::vector<Term> terms, std::int64_t constant) {
  if (terms.empty()) return constant;
  auto sum = std::make_shared<Sum>();
  sum->constant = constant;
  sum->terms = std::move(terms);
  Extent& extent = sum->extent;
  extent.weight = 0;
  extent.hash = mix(17, static_cast<std::size_t>(constant));
  for (const Term& term : sum->terms) {
    absorb(extent, term.monomial->extent, 0);
    extent.hash += mix(term.monomial->extent.hash, static_cast<std::size_t>(term.coefficient));
  }
  return IntAccess::make(std::move(sum));
}

// a + times * b, both sorted.
std::vector<Term> merge_terms(std::span<const Term> a, std::span<const Term> b,
                              std::int64_t times) {
  std::vector<Term> merged;
  merged.reserve(a.size() + b.size());
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    const int by = order(*x->monomial, *y->monomial);
    if (by < 0) {
      merged.push_back(*x++);
    } else if (by > 0) {
      merged.push_back({checked_mul(times, y->coefficient), y->monomial});
      ++y;
    } else {
      const std::int64_t scaled = checked_mul(times, y->coefficient);
      const std::int64_t coefficient = checked_add(x->coefficient, scaled);
      if (coefficient != 0) merged.push_back({coefficient, x->monomial});
      ++x, ++y;
    }
  }
  merged.insert(merged.end(), x, a.end());
  for (; y != b.end(); ++y) merged.push_back({checked_mul(times, y->coefficient), y->monomial});
  return merged;
}

Int scale(const Int& x, std::int64_t times) {
  if (times == 1) return x;
  if (times == 0) return 0;
  const std::int64_t constant = checked_mul(constant_of(x), times);
  std::vector<Term> terms;
  terms.reserve(terms_of(x).size());
  for (const Term& term : terms_of(x)) {
    terms.push_back({checked_mul(term.coefficient, times), term.monomial});
  }
  return make_sum(std::move(terms), constant);
}

}  // namespace

std::size_t mix(std::size_t seed, std::size_t value) {
  std::uint64_t x = seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ULL;
  return x ^ (x >> 29);
}

void absorb(Extent& whole, const Extent& part, int levels) {
  const int depth = part.depth + levels;
  whole.weight += part.weight;
  if (depth > kMaxDepth || whole.weight > kMaxWeight) throw_too_large();
  whole.depth = std::max<std::uint16_t>(whole.depth, static_cast<std::uint16_t>(depth));
  whole.symbols |= part.symbols;
  whole.choices |= part.choices;
}

MonomialRef multiply(const MonomialRef& a, const MonomialRef& b) {
  std::vector<Factor> factors;
  factors.reserve(a->factors.size() + b->factors.size());
  auto x = a->factors.begin();
  auto y = b->factors.begin();
  while (x != a->factors.end() && y != b->factors.end()) {
    const int by = order(*x->atom, *y->atom);
    if (by < 0) {
      factors.push_back(*x++);
    } else if (by > 0) {
      factors.push_back(*y++);
    } else {
      factors.push_back({x->atom, x->power + y->power});
      ++x, ++y;
    }
  }
  factors.insert(factors.end(), x, a->factors.end());
  factors.insert(factors.end(), y, b->factors.end());
  return make_monomial(std::move(factors));
}

MonomialRef divide(const MonomialRef& a, const MonomialRef& b) {
  std::vector<Factor> factors;
  auto y = b->factors.begin();
  for (const Factor& factor : a->factors) {
    if (y == b->factors.end() || order(*factor.atom, *y->atom) != 0) {
      factors.push_back(factor);
      continue;
    }
    if (factor.power < y->power) return nullptr;
    if (factor.power > y->power) factors.push_back({factor.atom, factor.power - y->power});
    ++y;
  }
  if (y != b->factors.end()) return nullptr;
  return make_monomial(std::move(factors));
}

MonomialRef common_factors(const MonomialRef& a, const MonomialRef& b) {
  std::vector<Factor> factors;
  auto x = a->factors.begin();
  auto y = b->factors.begin();
  while (x != a->factors.end() && y != b->factors.end()) {
    const int by = order(*x->atom, *y->atom);
    if (by == 0) {
      factors.push_back({x->atom, std::min(x->power, y->power)});
      ++x, ++y;
    } else if (by < 0) {
      ++x;
    } else {
      ++y;
    }
  }
  return make_monomial(std::move(factors));
}

MonomialRef lone_monomial(AtomRef atom) {
  std::vector<Factor> factors;
  factors.push_back({std::move(atom), 1});
  return make_monomial(std::move(factors));
}

Int from_atom(Atom atom) {
  Extent& extent = atom.extent;
  extent.hash = static_cast<std::size_t>(atom.kind) + 1;
  const auto take = [&extent](const Extent& part) {
    absorb(extent, part, 1);
    extent.hash = mix(extent.hash, part.hash);
  };
  for (const Int& operand : atom.operands) {
    take(extent_of(operand));
    extent.hash = mix(extent.hash, operand.hash());
  }
  if (atom.when) take(atom.when->node().extent);
  if (atom.real) take(atom.real->node().extent);
  if (atom.kind == Atom::Kind::symbol) {
    extent.hash = std::hash<std::string_view>{}(atom.name);
    extent.symbols = symbol_bit(atom.name);
  }
  using Kind = Atom::Kind;
  if (atom.kind == Kind::min || atom.kind == Kind::max || atom.kind == Kind::select) {
    extent.choices = true;
  }
  std::vector<Term> terms;
  terms.push_back({1, lone_monomial(std::make_shared<Atom>(std::move(atom)))});
  return make_sum(std::move(terms), 0);
}

Int from_terms(std::vector<Term> terms, std::int64_t constant) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return order(*a.monomial, *b.monomial) < 0; });
  std::vector<Term> merged;
  merged.reserve(terms.size());
  for (Term& term : terms) {
    if (term.monomial->factors.empty()) {
      constant = checked_add(constant, term.coefficient);
    } else if (!merged.empty() && order(*merged.back().monomial, *term.monomial) == 0) {
      merged.back().coefficient = checked_add(merged.back().coefficient, term.coefficient);
    } else {
      if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
      merged.push_back(std::move(term));
    }
  }
  if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
  return make_sum(std::move(merged), constant);
}

}  // namespace detail

using namespace detail;

Int::Int(std::shared_ptr<const Sum> sum) : sum_(std::move(sum)) {}

Int Int::symbol(std::string_view name) {
  const auto unprintable = [](char c) {
    return c == '`' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  };
  if (name.empty() || std::any_of(name.begin(), name.end(), unprintable)) {
    throw ExportError(
        Diagnostic{.code = Code::bad_text,
                   .what = "a dimension's name is empty or has a character that cannot be printed",
                   .ways_out = {"name it with letters, digits and underscores"}});
  }
  return from_atom(Atom{.kind = Atom::Kind::symbol, .name = std::string(name)});
}

std::optional<std::int64_t> Int::constant() const {
  if (sum_ != nullptr) return std::nullopt;
  return constant_;
}

std::optional<std::string_view> Int::as_symbol() const {
  const Atom* atom = lone_atom(*this);
  if (atom == nullptr || atom->kind != Atom::Kind::symbol) return std::nullopt;
  return atom->name;
}

std::size_t Int::hash() const {
  return sum_ == nullptr ? mix(29, static_cast<std::size_t>(constant_)) : sum_->extent.hash;
}

Int Int::operator-() const {
  return sum_ == nullptr ? Int(checked_neg(constant_)) : scale(*this, -1);
}

Int operator+(const Int& a, const Int& b) {
  const std::int64_t constant = checked_add(constant_of(a), constant_of(b));
  if (a.is_constant() && b.is_constant()) return constant;
  if (a.is_constant() && constant_of(a) == 0) return b;
  if (b.is_constant() && constant_of(b) == 0) return a;
  return make_sum(merge_terms(terms_of(a), terms_of(b), 1), constant);
}

Int operator-(const Int& a, const Int& b) {
  const std::int64_t constant = checked_sub(constant_of(a), constant_of(b));
  if (b.is_constant()) {
    if (a.is_constant()) return constant;
    if (constant_of(b) == 0) return a;
  }
  return make_sum(merge_terms(terms_of(a), terms_of(b), -1), constant);
}

Int operator*(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(constant_of(a), constant_of(b));
  if (a.is_constant()) return scale(b, constant_of(a));
  if (b.is_constant()) return scale(a, constant_of(b));
  const Sum& x = *sum_of(a);
  const Sum& y = *sum_of(b);
  if ((x.terms.size() + 1) * (y.terms.size() + 1) > kMaxWeight) throw_too_large();
  std::vector<Term> terms;
  terms.reserve((x.terms.size() + 1) * (y.terms.size() + 1));
  for (const Term& p : x.terms) {
    for (const Term& q : y.terms) {
      terms.push_back(
          {checked_mul(p.coefficient, q.coefficient), multiply(p.monomial, q.monomial)});
    }
    if (y.constant != 0) terms.push_back({checked_mul(p.coefficient, y.constant), p.monomial});
  }
  if (x.constant != 0) {
    for (const Term& q : y.terms)
      terms.push_back({checked_mul(q.coefficient, x.constant), q.monomial});
  }
  const std::int64_t constant = checked_mul(x.constant, y.constant);
  if (terms.size() == 1) return make_sum(std::move(terms), constant);
  return from_terms(std::move(terms), constant);
}

Int pow(const Int& a, std::int64_t exponent) {
  if (exponent < 0) throw InternalError("a negative exponent of an integer expression");
  Int result = 1;
  Int base = a;
  while (true) {
    if ((exponent & 1) != 0) result *= base;
    exponent >>= 1;
    if (exponent == 0) return result;
    base *= base;
  }
}

Int product(const std::vector<Int>& factors) {
  Int result = 1;
  for (const Int& factor : factors) result *= factor;
  return result;
}

}  // namespace modelport::shape
