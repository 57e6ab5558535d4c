// Writes sympy's text. The names are sympy's own and those of torch.utils._sympy.functions.
#include "backends/pt2/sympy_text.h"

#include <fmt/format.h>

#include <cmath>

namespace modelport::pt2 {
namespace {

void append_number(std::string& out, const SymExpr& x) {
  if (x.kind == SymKind::boolean) {
    out += x.integer != 0 ? "true" : "false";
  } else if (x.kind == SymKind::integer) {
    out += fmt::format("Integer({})", x.integer);
  } else if (std::isinf(x.real)) {
    out += x.real > 0 ? "oo" : "Mul(Integer(-1), oo)";
  } else {
    out += fmt::format("Float('{:.17g}', precision=53)", x.real);
  }
}

class Appender {
 public:
  Appender(std::string& out, const AppendSymbol& symbol) : out_(out), symbol_(symbol) {}

  void append(const SymExpr& x) {
    switch (x.op) {
      case SymOp::number:
        return append_number(out_, x);
      case SymOp::symbol:
        return symbol_(out_, x.name);
      case SymOp::neg:
        out_ += "Mul(Integer(-1), ";
        append(x.args[0]);
        out_ += ')';
        return;
      case SymOp::sub:
        out_ += "Add(";
        append(x.args[0]);
        out_ += ", Mul(Integer(-1), ";
        append(x.args[1]);
        out_ += "))";
        return;
      default:
        out_ += function_name(x);
        out_ += '(';
        for (std::size_t i = 0; i < x.args.size(); ++i) {
          if (i > 0) out_ += ", ";
          append(x.args[i]);
        }
        // Sympy would factor every pair of operands to see which is greater; we know neither is.
        if (x.op == SymOp::min || x.op == SymOp::max) out_ += ", evaluate=False";
        out_ += ')';
    }
  }

 private:
  static std::string_view function_name(const SymExpr& x) {
    const auto is_integer = [](const SymExpr& a) { return a.kind == SymKind::integer; };
    if (x.op == SymOp::pow && x.kind == SymKind::integer) return "PowByNatural";
    if (x.op == SymOp::true_div && is_integer(x.args[0]) && is_integer(x.args[1]))
      return "IntTrueDiv";
    return facts_of(x.op).sympy;
  }

  std::string& out_;
  const AppendSymbol& symbol_;
};

}  // namespace

void append_sympy(std::string& out, const SymExpr& x, const AppendSymbol& append_symbol) {
  Appender(out, append_symbol).append(x);
}

}  // namespace modelport::pt2
