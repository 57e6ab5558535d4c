// Symbolic numbers as sympy's `srepr` writes them, which is how a program stores them:
// "Add(Symbol('s0', positive=True, integer=True), Integer(1))".
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backends/pt2/sym_expr.h"

namespace modelport::pt2 {

/// `append_symbol(out, name)` writes a symbol.
using AppendSymbol = std::function<void(std::string& out, const std::string& name)>;
void append_sympy(std::string& out, const SymExpr& x, const AppendSymbol& append_symbol);

/// Reads what torch or we wrote; bare names are symbols too. `rename` gives a symbol's name and
/// kind. Throws ExportError (Code::bad_file), also for what shape has no operator for.
using ReadSymbol = std::function<SymExpr(std::string_view name)>;
SymExpr parse_sympy(std::string_view text, const ReadSymbol& read_symbol);

}  // namespace modelport::pt2
