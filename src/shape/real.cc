// Symbolic floats, and the integers that are rounded from them.
#include "shape/real.h"

#include <bit>
#include <cmath>
#include <limits>

#include "shape/expression.h"
#include "shape/python_arithmetic.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Op = Real::Op;

constexpr double kExactIntegers =
    9007199254740992.0;  // 2**53: doubles hold every integer up to here

Int rounded(Atom::Kind kind, const Real& x) {
  return from_atom(Atom{.kind = kind, .real = std::make_shared<Real>(x)});
}

/// a and b, if x is the quotient of two integers.
std::optional<std::pair<Int, Int>> as_quotient(const Real& x) {
  const Real::Node& node = x.node();
  if (node.op != Op::div) return std::nullopt;
  auto over = as_integer(node.operands[0]);
  auto under = as_integer(node.operands[1]);
  if (!over || !under || *under == Int(0)) return std::nullopt;
  return std::pair{std::move(*over), std::move(*under)};
}

}  // namespace

std::optional<Int> detail::as_integer(const Real& x) {
  const Real::Node& node = x.node();
  const auto both = [&]() -> std::optional<std::pair<Int, Int>> {
    auto a = as_integer(node.operands[0]);
    if (!a) return std::nullopt;
    auto b = as_integer(node.operands[1]);
    if (!b) return std::nullopt;
    return std::pair{std::move(*a), std::move(*b)};
  };
  switch (node.op) {
    case Op::number:
      if (std::abs(node.number) > kExactIntegers || std::trunc(node.number) != node.number)
        return std::nullopt;
      return static_cast<std::int64_t>(node.number);
    case Op::integer:
      return node.integer;
    case Op::add:
      if (const auto sides = both()) return sides->first + sides->second;
      return std::nullopt;
    case Op::sub:
      if (const auto sides = both()) return sides->first - sides->second;
      return std::nullopt;
    case Op::mul:
      if (const auto sides = both()) return sides->first * sides->second;
      return std::nullopt;
    case Op::neg:
      if (const auto operand = as_integer(node.operands[0])) return -*operand;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Extent detail::extent_of(const Real::Node& node) {
  Extent extent;
  extent.hash =
      mix(static_cast<std::size_t>(node.op) + 101, std::bit_cast<std::uint64_t>(node.number));
  extent.hash = mix(extent.hash, std::hash<std::string>{}(node.name));
  absorb(extent, extent_of(node.integer), 1);
  extent.hash = mix(extent.hash, node.integer.hash());
  for (const Real& operand : node.operands) {
    absorb(extent, operand.node().extent, 1);
    extent.hash = mix(extent.hash, operand.node().extent.hash);
  }
  if (node.when) {
    absorb(extent, node.when->node().extent, 1);
    extent.hash = mix(extent.hash, node.when->node().extent.hash);
  }
  return extent;
}

namespace {

std::shared_ptr<const Real::Node> make_node(Real::Node node) {
  node.extent = extent_of(node);
  return std::make_shared<const Real::Node>(std::move(node));
}

}  // namespace

Real::Real(double value) {
  if (std::isnan(value))
    value = std::numeric_limits<double>::quiet_NaN();  // one NaN, so that it equals itself
  if (std::bit_cast<std::uint64_t>(value) == 0) {
    static const std::shared_ptr<const Node> zero = make_node({.op = Op::number});
    node_ = zero;
    return;
  }
  node_ = make_node({.op = Op::number, .number = value});
}

Real::Real(const Int& value) {
  const auto number = value.constant();
  *this = number ? Real(static_cast<double>(*number))
                 : Real(make_node({.op = Op::integer, .integer = value}));
}

Real Real::data(std::string_view name) {
  (void)Int::symbol(name);  // refuses names that could not be printed
  return Real(make_node({.op = Op::data, .name = std::string(name)}));
}

Real Real::binary(Op op, const Real& a, const Real& b) {
  const auto x = a.constant();
  const auto y = b.constant();
  if (x && y) return Real(python_binary(op, *x, *y));
  return Real(make_node({.op = op, .operands = {a, b}}));
}

Real Real::unary(Op op, const Real& a) {
  if (const auto x = a.constant()) return Real(python_unary(op, *x));
  return Real(make_node({.op = op, .operands = {a}}));
}

Real Real::select(const Bool& when, const Real& a, const Real& b) {
  if (const auto known = when.constant()) return *known ? a : b;
  if (a == b) return a;
  return Real(
      make_node({.op = Op::select, .operands = {a, b}, .when = std::make_shared<Bool>(when)}));
}

std::optional<double> Real::constant() const {
  if (node_->op != Op::number) return std::nullopt;
  return node_->number;
}

Int floor(const Real& x) {
  if (const auto number = x.constant()) return to_integer(std::floor(*number));
  if (auto integer = as_integer(x)) return *integer;
  if (const auto quotient = as_quotient(x)) return floor_div(quotient->first, quotient->second);
  return rounded(Atom::Kind::floor, x);
}

Int ceil(const Real& x) {
  if (const auto number = x.constant()) return to_integer(std::ceil(*number));
  if (auto integer = as_integer(x)) return *integer;
  if (const auto quotient = as_quotient(x)) return ceil_div(quotient->first, quotient->second);
  return rounded(Atom::Kind::ceil, x);
}

Int trunc(const Real& x) {
  if (const auto number = x.constant()) return to_integer(std::trunc(*number));
  if (auto integer = as_integer(x)) return *integer;
  if (const auto quotient = as_quotient(x)) {
    const auto& [a, b] = *quotient;
    const Range over = bounds_of_sizes(a);
    if (bounds_of_sizes(b).lo >= 0) {
      if (over.lo >= 0) return floor_div(a, b);
      if (over.hi <= 0) return ceil_div(a, b);
    }
  }
  return rounded(Atom::Kind::trunc, x);
}

Int round(const Real& x) {
  if (const auto number = x.constant()) return to_integer(std::nearbyint(*number));
  if (auto integer = as_integer(x)) return *integer;
  return rounded(Atom::Kind::round, x);
}

}  // namespace modelport::shape
