// Names, hints and JSON of symbols.
#include "backends/pt2/symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/pt2/json_text.h"
#include "backends/pt2/sympy_text.h"
#include "base/error.h"

namespace modelport::pt2 {
namespace {

/// The name of a symbol that a scalar stands for; empty if it is an expression.
std::pair<std::string, SymKind> symbol_of(const ir::ScalarType& type) {
  if (const auto* x = std::get_if<shape::Int>(&type.symbol)) {
    return {std::string(x->as_symbol().value_or("")), SymKind::integer};
  }
  if (const auto* x = std::get_if<shape::Real>(&type.symbol)) {
    return {x->node().op == shape::Real::Op::data ? x->node().name : "", SymKind::real};
  }
  const auto& x = std::get<shape::Bool>(type.symbol);
  return {x.node().op == shape::Bool::Op::data ? x.node().name : "", SymKind::boolean};
}

bool holds(const shape::Guard& guard, const shape::Values& values) {
  try {
    return shape::evaluate(guard.condition, values);
  } catch (const ExportError&) {
    return true;  // depends on data: nothing to hold it against
  }
}

}  // namespace

Symbols::Symbols(const ir::Graph& graph) {
  for (const shape::Dim& dim : graph.dims) add(dim.name, SymKind::integer, &dim);
  for (const ir::Value& value : graph.values()) {
    const auto* scalar = std::get_if<ir::ScalarType>(&value.type);
    if (scalar == nullptr) continue;
    const auto [name, kind] = symbol_of(*scalar);
    if (!name.empty() && !index_.contains(name)) add(name, kind, nullptr);
  }
  choose_hints(graph);
}

void Symbols::add(std::string_view name, SymKind kind, const shape::Dim* dim) {
  TorchSymbol symbol;
  symbol.kind = kind;
  symbol.from_data = dim == nullptr || dim->from_data;
  if (dim != nullptr) symbol.range = dim->range;
  if (kind == SymKind::real) {
    symbol.name = fmt::format("zuf{}", data_reals_++);
  } else {
    symbol.name =
        symbol.from_data ? fmt::format("u{}", data_ints_++) : fmt::format("s{}", sizes_++);
  }
  if (kind != SymKind::integer) kinds_.emplace(name, kind);
  index_.emplace(name, symbols_.size());
  symbols_.emplace_back(name, std::move(symbol));
}

/// Torch's loader specialises a size that its hint makes 0 or 1 (seq - 1 at 2) and ties sizes that
/// are equal by their hints, so it is told of an example far from both. What the guards ask for, a
/// size divisible by 8 say, must hold for it too; the last resort is the example that was run.
void Symbols::choose_hints(const ir::Graph& graph) {
  for (const std::int64_t step : {48, 5040, 0}) {
    std::int64_t offset = 0;
    for (const shape::Dim& dim : graph.dims) {
      offset += step;
      const bool moves = !dim.from_data && dim.hint <= dim.range.hi - offset;
      const std::int64_t near =
          step == 0 ? dim.hint : std::max(dim.hint, std::min<std::int64_t>(2, dim.range.hi));
      hints_.ints[dim.name] = moves ? dim.hint + offset : near;
    }
    if (std::ranges::all_of(graph.guards, [&](const auto& guard) { return holds(guard, hints_); }))
      return;
  }
}

const TorchSymbol& Symbols::at(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end())
    throw InternalError(fmt::format("symbol {} is not declared in the graph", name));
  return symbols_[found->second].second;
}

std::int64_t Symbols::hint_of(const std::string& name) const {
  const auto found = hints_.ints.find(name);
  return found == hints_.ints.end() ? 0 : found->second;
}

/// In the expression that it first occurs in with its properties; from then on torch's reader knows
/// it by name, and reading a bare name takes it a third of the time.
void Symbols::append_symbol(std::string& out, const std::string& name) {
  const TorchSymbol& symbol = at(name);
  std::string text = symbol.name;
  if (!introduced_.contains(name)) {
    introducing_.push_back(name);
    const bool positive = !symbol.from_data && symbol.range.lo >= 1;
    text = symbol.kind == SymKind::real ? fmt::format("Symbol('{}')", symbol.name)
                                        : fmt::format("Symbol('{}', {}integer=True)", symbol.name,
                                                      positive ? "positive=True, " : "");
  }
  out += symbol.kind == SymKind::boolean ? fmt::format("Equality({}, Integer(1))", text) : text;
}

bool Symbols::has_hint(const SymExpr& x) const {
  if (x.op == SymOp::symbol) return !at(x.name).from_data;
  return std::ranges::all_of(x.args, [&](const SymExpr& arg) { return has_hint(arg); });
}

std::string Symbols::expression_json(const SymExpr& x, const std::string& hint) {
  std::string text;
  append_sympy(text, x,
               [this](std::string& out, const std::string& name) { append_symbol(out, name); });
  for (std::string& name : introducing_) introduced_.insert(std::move(name));
  introducing_.clear();
  std::string json = "{\"as_expr\": {\"expr_str\": ";
  append_string(json, text);
  json += ", \"hint\": " + hint + "}}";
  return json;
}

const std::string& Symbols::size_json(const shape::Int& x) {
  if (const auto known = sizes_json_.find(x); known != sizes_json_.end()) return known->second;
  if (const auto number = x.constant()) {
    return sizes_json_.emplace(x, fmt::format("{{\"as_int\": {}}}", *number)).first->second;
  }
  const SymExpr tree = to_tree(x, kinds_);
  std::string hint = "null";
  if (has_hint(tree)) {
    try {
      hint = fmt::format("{{\"as_int\": {}}}", shape::evaluate(x, hints_));
    } catch (const ExportError&) {  // a division by zero at the hints: torch does without
    }
  }
  const std::size_t before = introduced_.size();
  std::string json = expression_json(tree, hint);
  if (introduced_.size() == before) return sizes_json_.emplace(x, std::move(json)).first->second;
  first_json_ = std::move(json);
  return first_json_;
}

std::string Symbols::value_json(const SymExpr& x) {
  if (x.op == SymOp::number) {
    std::string json;
    if (x.kind == SymKind::integer) {
      json = fmt::format("{{\"as_int\": {}}}", x.integer);
    } else if (x.kind == SymKind::boolean) {
      json = fmt::format("{{\"as_bool\": {}}}", x.integer != 0);
    } else {
      json = "{\"as_float\": ";
      append_float(json, x.real);
      json += '}';
    }
    return json;
  }
  if (x.kind == SymKind::integer) return size_json(to_int(x));
  std::string hint = "null";
  if (x.kind == SymKind::real && has_hint(x)) {
    try {
      hint = "{\"as_float\": ";
      append_float(hint, shape::evaluate(to_real(x), hints_));
      hint += '}';
    } catch (const ExportError&) {
      hint = "null";
    }
  }
  return expression_json(x, hint);
}

}  // namespace modelport::pt2
