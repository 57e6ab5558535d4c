// Trees of symbolic numbers as shape's expressions.
#include <cmath>
#include <functional>
#include <optional>

#include "backends/pt2/sym_expr.h"
#include "base/error.h"

namespace modelport::pt2 {
namespace {

[[noreturn]] void does_not_fit(std::string_view what) {
  throw ExportError(
      Diagnostic{.code = Code::bad_file,
                 .what = "a symbolic number that this program cannot hold: " + std::string(what),
                 .where = {},
                 .module_path = {},
                 .notes = {},
                 .ways_out = {"export the model with modelport.capture instead"}});
}

template <class Number, class Convert, class Combine>
Number fold(const SymExpr& x, Convert convert, Combine combine) {
  if (x.args.empty()) does_not_fit("an operator without operands");
  Number result = convert(x.args[0]);
  for (std::size_t i = 1; i < x.args.size(); ++i) result = combine(result, convert(x.args[i]));
  return result;
}

const SymExpr& argument(const SymExpr& x, std::size_t index) {
  if (index >= x.args.size()) does_not_fit("an operator with too few operands");
  return x.args[index];
}

shape::Int power(const SymExpr& x) {
  const SymExpr& exponent = argument(x, 1);
  const bool usable = exponent.op == SymOp::number && exponent.kind == SymKind::integer &&
                      exponent.integer >= 0 && exponent.integer <= 64;
  if (!usable) does_not_fit("a power with a symbolic exponent");
  return shape::pow(to_int(argument(x, 0)), exponent.integer);
}

std::optional<shape::Real::Op> real_op(SymOp op) {
  using Op = shape::Real::Op;
  switch (op) {
    case SymOp::neg:
      return Op::neg;
    case SymOp::abs:
      return Op::abs;
    case SymOp::sqrt:
      return Op::sqrt;
    case SymOp::exp:
      return Op::exp;
    case SymOp::log:
      return Op::log;
    case SymOp::log2:
      return Op::log2;
    case SymOp::sin:
      return Op::sin;
    case SymOp::cos:
      return Op::cos;
    case SymOp::tan:
      return Op::tan;
    case SymOp::tanh:
      return Op::tanh;
    case SymOp::add:
      return Op::add;
    case SymOp::sub:
      return Op::sub;
    case SymOp::mul:
      return Op::mul;
    case SymOp::true_div:
      return Op::div;
    case SymOp::pow:
      return Op::pow;
    case SymOp::min:
      return Op::min;
    case SymOp::max:
      return Op::max;
    default:
      return std::nullopt;
  }
}

std::optional<shape::Compare> compare_op(SymOp op) {
  using shape::Compare;
  switch (op) {
    case SymOp::eq:
      return Compare::eq;
    case SymOp::ne:
      return Compare::ne;
    case SymOp::lt:
      return Compare::lt;
    case SymOp::le:
      return Compare::le;
    case SymOp::gt:
      return Compare::gt;
    case SymOp::ge:
      return Compare::ge;
    default:
      return std::nullopt;
  }
}

}  // namespace

shape::Int to_int(const SymExpr& x) {
  switch (x.op) {
    case SymOp::number:
      if (x.kind == SymKind::real) does_not_fit("a fraction where an integer belongs");
      return x.integer;
    case SymOp::symbol:
      if (x.kind != SymKind::integer) does_not_fit(x.name + " where an integer belongs");
      return shape::Int::symbol(x.name);
    case SymOp::neg:
      return -to_int(argument(x, 0));
    case SymOp::add:
      return fold<shape::Int>(x, to_int, std::plus<>());
    case SymOp::sub:
      return fold<shape::Int>(x, to_int, std::minus<>());
    case SymOp::mul:
      return fold<shape::Int>(x, to_int, std::multiplies<>());
    case SymOp::floor_div:
      return shape::floor_div(to_int(argument(x, 0)), to_int(argument(x, 1)));
    case SymOp::mod:
      return shape::mod(to_int(argument(x, 0)), to_int(argument(x, 1)));
    case SymOp::pow:
      return power(x);
    case SymOp::min:
      return fold<shape::Int>(x, to_int,
                              [](const auto& a, const auto& b) { return shape::min(a, b); });
    case SymOp::max:
      return fold<shape::Int>(x, to_int,
                              [](const auto& a, const auto& b) { return shape::max(a, b); });
    case SymOp::abs: {
      const shape::Int inner = to_int(argument(x, 0));
      return shape::max(inner, -inner);
    }
    case SymOp::select:
      return shape::select(to_bool(argument(x, 0)), to_int(argument(x, 1)), to_int(argument(x, 2)));
    case SymOp::floor:
      return shape::floor(to_real(argument(x, 0)));
    case SymOp::ceil:
      return shape::ceil(to_real(argument(x, 0)));
    case SymOp::trunc:
      return shape::trunc(to_real(argument(x, 0)));
    case SymOp::round:
      return shape::round(to_real(argument(x, 0)));
    default:
      does_not_fit(std::string(facts_of(x.op).sympy) + " where an integer belongs");
  }
}

shape::Real to_real(const SymExpr& x) {
  if (x.kind == SymKind::integer) return shape::Real(to_int(x));
  if (x.op == SymOp::number && x.kind == SymKind::real) return x.real;
  if (x.op == SymOp::symbol && x.kind == SymKind::real) return shape::Real::data(x.name);
  if (x.op == SymOp::to_float) return to_real(argument(x, 0));
  if (x.op == SymOp::select) {
    return shape::Real::select(to_bool(argument(x, 0)), to_real(argument(x, 1)),
                               to_real(argument(x, 2)));
  }
  const auto op = real_op(x.op);
  if (!op) does_not_fit(std::string(facts_of(x.op).sympy) + " where a float belongs");
  if (x.args.size() == 1) return shape::Real::unary(*op, to_real(x.args[0]));
  return fold<shape::Real>(
      x, to_real, [&](const auto& a, const auto& b) { return shape::Real::binary(*op, a, b); });
}

shape::Bool to_bool(const SymExpr& x) {
  if (x.op == SymOp::number && x.kind == SymKind::boolean) return x.integer != 0;
  if (x.op == SymOp::symbol && x.kind == SymKind::boolean) return shape::Bool::data(x.name);
  if (x.op == SymOp::logical_not) return !to_bool(argument(x, 0));
  if (x.op == SymOp::logical_and) {
    return fold<shape::Bool>(x, to_bool, [](const auto& a, const auto& b) { return a && b; });
  }
  if (x.op == SymOp::logical_or) {
    return fold<shape::Bool>(x, to_bool, [](const auto& a, const auto& b) { return a || b; });
  }
  const auto op = compare_op(x.op);
  if (!op) does_not_fit("a number where a truth value belongs");
  const SymExpr& a = argument(x, 0);
  const SymExpr& b = argument(x, 1);
  if (a.kind == SymKind::integer && b.kind == SymKind::integer)
    return shape::Bool::compare(*op, to_int(a), to_int(b));
  return shape::Bool::compare(*op, to_real(a), to_real(b));
}

}  // namespace modelport::pt2
