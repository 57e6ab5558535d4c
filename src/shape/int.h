// Symbolic integers in canonical form: a sum of products of atoms. Two expressions that are equal
// as polynomials over the same atoms are the same object by form, so `==` decides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace modelport::shape {

namespace detail {
struct Sum;   // constant + terms, each a coefficient times a product of atom powers
struct Atom;  // a symbol, floor_div, min, max, select, or an integer rounded from a Real

/// Kept with every node, so that comparing, substituting and refusing what is too large stay cheap.
struct Extent {
  std::size_t hash = 0;
  std::uint64_t symbols =
      0;  // one bit a symbol, by the hash of its name: what is not set is not mentioned
  std::uint32_t weight = 1;  // nodes, counted as a tree
  std::uint16_t depth = 1;
  bool choices = false;  // holds a min, max or select, which ranges may settle
};
}  // namespace detail

class Real;
class Bool;

class Int {
 public:
  Int(std::int64_t value = 0) : constant_(value) {}  // NOLINT: numbers are expressions
  static Int symbol(std::string_view name);

  bool is_constant() const { return sum_ == nullptr; }
  std::optional<std::int64_t> constant() const;
  /// The name, if this is exactly one symbol.
  std::optional<std::string_view> as_symbol() const;

  Int operator-() const;
  friend Int operator+(const Int& a, const Int& b);
  friend Int operator-(const Int& a, const Int& b);
  friend Int operator*(const Int& a, const Int& b);
  Int& operator+=(const Int& b) { return *this = *this + b; }
  Int& operator-=(const Int& b) { return *this = *this - b; }
  Int& operator*=(const Int& b) { return *this = *this * b; }
  friend bool operator==(const Int& a, const Int& b);
  std::size_t hash() const;

 private:
  explicit Int(std::shared_ptr<const detail::Sum> sum);
  std::int64_t constant_ = 0;               // meaningful when sum_ is null
  std::shared_ptr<const detail::Sum> sum_;  // null: a plain number
  friend struct IntAccess;
};

/// Rounds towards minus infinity, as Python's // does. A constant zero divisor throws ExportError.
Int floor_div(const Int& a, const Int& b);
/// Has the sign of the divisor, as Python's % does.
Int mod(const Int& a, const Int& b);
Int ceil_div(const Int& a, const Int& b);
Int min(const Int& a, const Int& b);
Int max(const Int& a, const Int& b);
Int pow(const Int& a, std::int64_t exponent);  // exponent >= 0
/// `when ? a : b`
Int select(const Bool& when, const Int& a, const Int& b);
/// Integers made from reals. A quotient of integers folds: floor(a / b) is floor_div(a, b).
Int floor(const Real& x);
Int ceil(const Real& x);
Int trunc(const Real& x);
Int round(const Real& x);  // half to even, as Python's round

Int product(const std::vector<Int>& factors);

using Bindings = std::map<std::string, std::int64_t, std::less<>>;
using Substitution = std::map<std::string, Int, std::less<>>;

/// Throws ExportError when a symbol has no value, on division by zero and on overflow.
std::int64_t evaluate(const Int& x, const Bindings& values);
Int substitute(const Int& x, const Substitution& replacements);
void collect_symbols(const Int& x, std::set<std::string, std::less<>>& into);
bool mentions(const Int& x, std::string_view symbol);

/// If `x == 0` can be solved for `symbol` (it appears once, linearly, with coefficient 1 or -1,
/// inside no other atom), the expression that it equals.
std::optional<Int> solve_for(const Int& x, std::string_view symbol);
/// Whether every coefficient of the sum, the constant included, is at least zero.
bool has_only_positive_terms(const Int& x);
/// The greatest number that divides every coefficient and the constant (0 for zero).
std::int64_t common_divisor(const Int& x);
/// a / b where the division is exact for all values of the symbols, by form; nothing where that
/// cannot be seen.
std::optional<Int> exact_quotient(const Int& a, const Int& b);

/// "2*batch*seq + seq//2 - 1"; parses back. Atoms print as a//b, a%b, min(a, b), max(a, b),
/// select(c, a, b), floor(r), ceil(r), trunc(r), round(r), with brackets where needed.
std::string print(const Int& x);
/// Throws ExportError with Code::bad_text and the column.
Int parse_int(std::string_view text);

struct Range {
  static constexpr std::int64_t kUnbounded = INT64_MAX;
  static constexpr std::int64_t kUnboundedBelow = INT64_MIN;
  std::int64_t lo = kUnboundedBelow;
  std::int64_t hi = kUnbounded;
  bool operator==(const Range&) const = default;
};
Range intersect(const Range& a, const Range& b);
/// "1..", "2..64", "..7"
std::string print(const Range& range);

using Ranges = std::map<std::string, Range, std::less<>>;
/// By interval arithmetic over the canonical form; symbols without a range are unbounded. Sound,
/// not tight.
Range bounds(const Int& x, const Ranges& ranges);

}  // namespace modelport::shape

extern template class std::vector<modelport::shape::Int>;  // compiled in int.cc alone
