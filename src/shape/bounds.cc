// Interval arithmetic over expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "shape/expression.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Kind = Atom::Kind;
using Wide = __int128;

constexpr Wide kInfinity = Wide{1} << 64;  // at or beyond: unbounded

/// Ends are at most kInfinity in magnitude. A symbol without a bound is within 64 bits all the
/// same.
struct Interval {
  Wide lo = -kInfinity;
  Wide hi = kInfinity;
};

Wide clamp(Wide v) { return std::clamp(v, -kInfinity, kInfinity); }
bool is_infinite(Wide v) { return v >= kInfinity || v <= -kInfinity; }

Interval add(const Interval& a, const Interval& b) {
  const bool below = is_infinite(a.lo) || is_infinite(b.lo);
  const bool above = is_infinite(a.hi) || is_infinite(b.hi);
  return {below ? -kInfinity : clamp(a.lo + b.lo), above ? kInfinity : clamp(a.hi + b.hi)};
}

Wide multiply_ends(Wide a, Wide b) {
  Wide product = 0;
  if (multiply_wide(a, b, kInfinity, product)) return product;
  return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
}

Interval multiply(const Interval& a, const Interval& b) {
  const Wide ends[] = {multiply_ends(a.lo, b.lo), multiply_ends(a.lo, b.hi),
                       multiply_ends(a.hi, b.lo), multiply_ends(a.hi, b.hi)};
  return {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
}

Interval power(const Interval& base, std::int32_t exponent) {
  Interval result{1, 1};
  // Steps after both ends are unbounded or unchanged would not change anything.
  for (std::int32_t i = 0; i < std::min(exponent, 130); ++i) result = multiply(result, base);
  if (exponent > 130 && std::max(base.hi, -base.lo) > 1) result = {-kInfinity, kInfinity};
  if (exponent % 2 == 0 && result.lo < 0) {
    result.lo = 0;
  } else if (exponent % 2 == 1 && base.lo >= 0) {
    result.lo = std::max<Wide>(result.lo, 0);
  }
  return result;
}

/// Rounds down; b is not zero. An unbounded divisor leaves 0 or -1.
Wide divide_ends(Wide a, Wide b) {
  if (is_infinite(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  if (is_infinite(a)) return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  const Wide quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Interval divide(const Interval& a, Interval b) {
  if (b.lo == 0) b.lo = 1;  // it would be an error
  if (b.hi == 0) b.hi = -1;
  if (b.lo < 0 && b.hi > 0) {
    const Wide most = std::max(a.hi < 0 ? -a.hi : a.hi, a.lo < 0 ? -a.lo : a.lo);
    return {-most, most};
  }
  if (b.lo > b.hi) return {};  // only zero
  const Wide ends[] = {divide_ends(a.lo, b.lo), divide_ends(a.lo, b.hi), divide_ends(a.hi, b.lo),
                       divide_ends(a.hi, b.hi)};
  return {*std::ranges::min_element(ends), *std::ranges::max_element(ends)};
}

class Bounder {
 public:
  explicit Bounder(const Ranges& ranges, std::int64_t least = INT64_MIN)
      : ranges_(ranges), least_(least) {}

  Interval of(const Int& x) const {
    if (const auto number = x.constant()) return {*number, *number};
    if (const auto part = find_mod(x, true)) {
      return add(of(part->rest),
                 multiply({part->times, part->times}, remainder(part->dividend, part->divisor)));
    }
    Interval total{constant_of(x), constant_of(x)};
    for (const Term& term : terms_of(x)) {
      Interval value{term.coefficient, term.coefficient};
      for (const Factor& factor : term.monomial->factors) {
        value = multiply(value, power(of(*factor.atom), factor.power));
      }
      total = add(total, value);
    }
    return total;
  }

 private:
  Interval remainder(const Int& dividend, const Int& divisor) const {
    const Interval by = of(divisor);
    const Interval whole = of(dividend);
    Interval result;
    if (by.lo >= 0) result = {0, is_infinite(by.hi) ? kInfinity : std::max<Wide>(by.hi - 1, 0)};
    if (by.hi <= 0) result = {is_infinite(by.lo) ? -kInfinity : std::min<Wide>(by.lo + 1, 0), 0};
    // No remainder of a number that is not negative exceeds it.
    if (by.lo >= 0 && whole.lo >= 0) result.hi = std::min(result.hi, whole.hi);
    return result;
  }

  Interval of(const Atom& atom) const {
    switch (atom.kind) {
      case Kind::symbol: {
        const auto found = ranges_.find(atom.name);
        if (found == ranges_.end()) return {least_, INT64_MAX};
        return {found->second.lo, found->second.hi};
      }
      case Kind::floor_div:
        return divide(of(atom.operands[0]), of(atom.operands[1]));
      case Kind::min:
      case Kind::max: {
        Interval best = of(atom.operands[0]);
        for (const Int& operand : atom.operands) {
          const Interval other = of(operand);
          const bool least = atom.kind == Kind::min;
          best.lo = least ? std::min(best.lo, other.lo) : std::max(best.lo, other.lo);
          best.hi = least ? std::min(best.hi, other.hi) : std::max(best.hi, other.hi);
        }
        return best;
      }
      case Kind::select: {
        const Interval a = of(atom.operands[0]);
        const Interval b = of(atom.operands[1]);
        return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
      }
      case Kind::floor:
        return rounded(*atom.real, [](double v) { return std::floor(v); });
      case Kind::ceil:
        return rounded(*atom.real, [](double v) { return std::ceil(v); });
      case Kind::trunc:
        return rounded(*atom.real, [](double v) { return std::trunc(v); });
      case Kind::round:
        return rounded(*atom.real, [](double v) { return std::nearbyint(v); });
    }
    __builtin_unreachable();
  }

  template <class F>
  Interval rounded(const Real& x, F round) const {
    const RealRange range = detail::bounds(x, ranges_, least_);
    const auto end = [&](double v) -> Wide {
      constexpr double kLimit = 9.2e18;
      if (v >= kLimit) return kInfinity;
      if (v <= -kLimit) return -kInfinity;
      return static_cast<std::int64_t>(round(v));
    };
    return {end(range.lo), end(range.hi)};
  }

  const Ranges& ranges_;
  std::int64_t least_;  // of symbols without a range
};

}  // namespace

Range intersect(const Range& a, const Range& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

std::string print(const Range& range) {
  std::string text;
  if (range.lo != Range::kUnboundedBelow) text += fmt::format("{}", range.lo);
  text += "..";
  if (range.hi != Range::kUnbounded) text += fmt::format("{}", range.hi);
  return text;
}

namespace {

Range to_range(const Interval& interval) {
  Range range;
  if (interval.lo > INT64_MIN && interval.lo <= INT64_MAX)
    range.lo = static_cast<std::int64_t>(interval.lo);
  if (interval.hi < INT64_MAX && interval.hi >= INT64_MIN)
    range.hi = static_cast<std::int64_t>(interval.hi);
  return range;
}

}  // namespace

Range bounds(const Int& x, const Ranges& ranges) { return to_range(Bounder(ranges).of(x)); }
Range detail::bounds_of_sizes(const Int& x) { return to_range(Bounder({}, 0).of(x)); }

// Rounding to nearest never reverses an order, so that the ends of a sum, product or quotient,
// computed as the value itself is, bound it.
RealRange detail::bounds(const Real& x, const Ranges& ranges, std::int64_t least) {
  using Op = Real::Op;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Real::Node& node = x.node();
  const auto operand = [&](std::size_t i) {
    return detail::bounds(node.operands[i], ranges, least);
  };
  const auto hull = [](std::initializer_list<double> ends) -> RealRange {
    for (const double end : ends) {
      if (std::isnan(end)) return {-kInf, kInf};
    }
    return {std::min(ends), std::max(ends)};
  };
  switch (node.op) {
    case Op::number:
      return hull({node.number});
    case Op::integer: {
      const Range range = to_range(Bounder(ranges, least).of(node.integer));
      return {range.lo == Range::kUnboundedBelow ? -kInf : static_cast<double>(range.lo),
              range.hi == Range::kUnbounded ? kInf : static_cast<double>(range.hi)};
    }
    case Op::add:
      return hull({operand(0).lo + operand(1).lo, operand(0).hi + operand(1).hi});
    case Op::sub:
      return hull({operand(0).lo - operand(1).hi, operand(0).hi - operand(1).lo});
    case Op::mul: {
      const RealRange a = operand(0), b = operand(1);
      return hull({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
    }
    case Op::div: {
      const RealRange a = operand(0), b = operand(1);
      if (!(b.lo > 0 || b.hi < 0)) return {-kInf, kInf};
      return hull({a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi});
    }
    case Op::neg:
      return {-operand(0).hi, -operand(0).lo};
    case Op::sqrt: {
      const RealRange a = operand(0);
      if (!(a.lo >= 0)) return {-kInf, kInf};  // might be a NaN
      return {std::sqrt(a.lo), std::sqrt(a.hi)};
    }
    case Op::pow: {
      const RealRange base = operand(0), exponent = operand(1);
      if (!(base.lo >= 0) || exponent.lo != exponent.hi || !(exponent.lo >= 0))
        return {-kInf, kInf};
      // Libraries round powers to one of the two nearest.
      return {std::nextafter(std::pow(base.lo, exponent.lo), -kInf),
              std::nextafter(std::pow(base.hi, exponent.lo), kInf)};
    }
    default:
      return {-kInf, kInf};
  }
}

}  // namespace modelport::shape
