// Trees of symbolic numbers: making them, and turning them into shape's expressions.
#include "backends/pt2/sym_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace modelport::pt2 {
namespace {

constexpr std::array kFacts{
    SymOpFacts{SymOp::number, "", ""},
    SymOpFacts{SymOp::symbol, "", ""},
    SymOpFacts{SymOp::neg, "", ""},
    SymOpFacts{SymOp::add, "", "Add"},
    SymOpFacts{SymOp::sub, "", ""},
    SymOpFacts{SymOp::mul, "", "Mul"},
    SymOpFacts{SymOp::floor_div, "", "FloorDiv"},
    SymOpFacts{SymOp::mod, "", "PythonMod"},
    SymOpFacts{SymOp::true_div, "", "FloatTrueDiv"},
    SymOpFacts{SymOp::pow, "", "FloatPow"},
    SymOpFacts{SymOp::min, "min", "Min"},
    SymOpFacts{SymOp::max, "max", "Max"},
    SymOpFacts{SymOp::select, "select", "Where"},
    SymOpFacts{SymOp::floor, "floor", "FloorToInt"},
    SymOpFacts{SymOp::ceil, "ceil", "CeilToInt"},
    SymOpFacts{SymOp::trunc, "trunc", "TruncToInt"},
    SymOpFacts{SymOp::round, "round", "RoundToInt"},
    SymOpFacts{SymOp::to_float, "float", "ToFloat"},
    SymOpFacts{SymOp::abs, "abs", "Abs"},
    SymOpFacts{SymOp::sqrt, "sqrt", "sqrt"},
    SymOpFacts{SymOp::exp, "exp", "exp"},
    SymOpFacts{SymOp::log, "log", "log"},
    SymOpFacts{SymOp::log2, "log2", "log2"},
    SymOpFacts{SymOp::sin, "sin", "sin"},
    SymOpFacts{SymOp::cos, "cos", "cos"},
    SymOpFacts{SymOp::tan, "tan", "tan"},
    SymOpFacts{SymOp::tanh, "tanh", "tanh"},
    SymOpFacts{SymOp::eq, "", "Equality"},
    SymOpFacts{SymOp::ne, "", "Unequality"},
    SymOpFacts{SymOp::lt, "", "StrictLessThan"},
    SymOpFacts{SymOp::le, "", "LessThan"},
    SymOpFacts{SymOp::gt, "", "StrictGreaterThan"},
    SymOpFacts{SymOp::ge, "", "GreaterThan"},
    SymOpFacts{SymOp::logical_and, "", "And"},
    SymOpFacts{SymOp::logical_or, "", "Or"},
    SymOpFacts{SymOp::logical_not, "", "Not"},
};

consteval bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (static_cast<std::size_t>(kFacts[i].op) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

SymKind kind_of(SymOp op, const std::vector<SymExpr>& args) {
  switch (op) {
    case SymOp::number:
    case SymOp::symbol:
    case SymOp::floor_div:
    case SymOp::floor:
    case SymOp::ceil:
    case SymOp::trunc:
    case SymOp::round:
      return SymKind::integer;
    case SymOp::true_div:
    case SymOp::to_float:
    case SymOp::sqrt:
    case SymOp::exp:
    case SymOp::log:
    case SymOp::log2:
    case SymOp::sin:
    case SymOp::cos:
    case SymOp::tan:
    case SymOp::tanh:
      return SymKind::real;
    case SymOp::eq:
    case SymOp::ne:
    case SymOp::lt:
    case SymOp::le:
    case SymOp::gt:
    case SymOp::ge:
    case SymOp::logical_and:
    case SymOp::logical_or:
    case SymOp::logical_not:
      return SymKind::boolean;
    case SymOp::neg:
    case SymOp::add:
    case SymOp::sub:
    case SymOp::mul:
    case SymOp::mod:
    case SymOp::pow:
    case SymOp::min:
    case SymOp::max:
    case SymOp::select:
    case SymOp::abs:
      break;
  }
  const bool real =
      std::ranges::any_of(args, [](const SymExpr& a) { return a.kind == SymKind::real; });
  const bool negative_power = op == SymOp::pow && args.size() == 2 && args[1].integer < 0;
  return real || negative_power ? SymKind::real : SymKind::integer;
}

}  // namespace

const SymOpFacts& facts_of(SymOp op) { return kFacts[static_cast<std::size_t>(op)]; }

const SymOpFacts* find_by_text(std::string_view text) {
  const auto row = std::ranges::find(kFacts, text, &SymOpFacts::text);
  return row == kFacts.end() || text.empty() ? nullptr : &*row;
}

const SymOpFacts* find_by_sympy(std::string_view name) {
  const auto row = std::ranges::find(kFacts, name, &SymOpFacts::sympy);
  return row == kFacts.end() || name.empty() ? nullptr : &*row;
}

SymExpr integer_expr(std::int64_t value) {
  SymExpr x;
  x.integer = value;
  return x;
}

SymExpr real_expr(double value) {
  SymExpr x;
  x.kind = SymKind::real;
  x.real = value;
  return x;
}

SymExpr boolean_expr(bool value) {
  SymExpr x;
  x.kind = SymKind::boolean;
  x.integer = value ? 1 : 0;
  return x;
}

SymExpr symbol_expr(std::string_view name, SymKind kind) {
  SymExpr x;
  x.op = SymOp::symbol;
  x.kind = kind;
  x.name = name;
  return x;
}

SymExpr make_expr(SymOp op, std::vector<SymExpr> args) {
  SymExpr x;
  x.op = op;
  x.kind = kind_of(op, args);
  x.args = std::move(args);
  return x;
}

SymExpr to_tree(const shape::Int& x, const SymKinds& kinds) {
  if (const auto number = x.constant()) return integer_expr(*number);
  if (const auto symbol = x.as_symbol()) return symbol_expr(*symbol, SymKind::integer);
  return parse_sym(shape::print(x), kinds);
}

SymExpr to_tree(const shape::Real& x, const SymKinds& kinds) {
  if (const auto number = x.constant()) return real_expr(*number);
  return parse_sym(shape::print(x), kinds);
}

SymExpr to_tree(const shape::Bool& x, const SymKinds& kinds) {
  if (const auto value = x.constant()) return boolean_expr(*value);
  return parse_sym(shape::print(x), kinds);
}

std::string key_of(const SymExpr& x) {
  if (x.op == SymOp::symbol) return x.name;
  if (x.op == SymOp::number) {
    if (x.kind == SymKind::real) return fmt::format("{:a}", x.real);
    return fmt::format("{}{}", x.kind == SymKind::boolean ? "?" : "", x.integer);
  }
  std::string key = fmt::format("{}(", static_cast<int>(x.op));
  for (const SymExpr& arg : x.args) {
    key += key_of(arg);
    key += ',';
  }
  key += ')';
  return key;
}

}  // namespace modelport::pt2
