// Symbols, expressions and types of a program.
#include <fmt/format.h>

#include <algorithm>

#include "backends/pt2/json_read.h"
#include "backends/pt2/program_reader.h"
#include "backends/pt2/sympy_text.h"
#include "backends/pt2/torch_numbers.h"

namespace modelport::pt2 {
namespace {

bool is_symbol_name(std::string_view name) {
  const auto usable = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() < 100 && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, usable);
}

/// Torch tells the kinds of symbols apart by how their names begin.
bool is_real(std::string_view torch_name) {
  return torch_name.starts_with("zuf") || torch_name.starts_with("zf");
}
bool is_from_data(std::string_view torch_name) {
  return torch_name.starts_with('u') || torch_name.starts_with("zuf");
}

}  // namespace

void ProgramReader::read_symbols(const Json& ranges, const Json& nodes) {
  for (const auto& [name, range] : ranges.items()) {
    const Json& lo = range.at("min_val");
    const Json& hi = range.at("max_val");
    shape::Range& read = ranges_[name];
    if (lo.is_number_integer()) read.lo = read_integer(lo);
    if (hi.is_number_integer()) read.hi = read_integer(hi);
    // Torch gives sizes a least value of 2 while it traces, and lets them be 0 or 1 when the
    // program runs.
    if (!is_from_data(name) && read.lo <= 2) read.lo = 0;
  }
  if (origin_) {
    for (const auto& [torch_name, name] : origin_->symbols) symbol_names_[torch_name] = name;
  }
  // A bool that is read out of a tensor is written as Eq(u0, 1); u0 then stands for a truth value.
  for (const Json& node : nodes) {
    const Json& outputs = node.at("outputs");
    const bool reads = node.at("target") == "torch.ops.aten.item.default" && outputs.size() == 1;
    if (!reads || !outputs[0].contains("as_sym_bool")) continue;
    const Json& json =
        tables_.bools->at(outputs[0]["as_sym_bool"].at("as_name").get<std::string>());
    if (!json.contains("as_expr")) continue;
    const SymExpr test =
        parse_sympy(json["as_expr"].at("expr_str").get<std::string>(),
                    [&](std::string_view name) { return symbol_expr(name, SymKind::integer); });
    if (test.op == SymOp::eq && test.args[0].op == SymOp::symbol)
      truth_symbols_.insert(test.args[0].name);
  }
}

SymExpr ProgramReader::symbol(std::string_view torch_name) {
  if (!is_symbol_name(torch_name))
    damaged("the program has a symbol with the name " + quote_text(torch_name));
  const std::string key(torch_name);
  if (symbols_seen_.insert(key).second) symbols_.push_back(key);
  const auto renamed = symbol_names_.find(key);
  const std::string& name = renamed == symbol_names_.end() ? key : renamed->second;
  if (truth_symbols_.contains(key)) return symbol_expr(name, SymKind::boolean);
  return symbol_expr(name, is_real(torch_name) ? SymKind::real : SymKind::integer);
}

const SymExpr& ProgramReader::expression(const std::string& text) {
  const auto known = expressions_.find(text);
  if (known != expressions_.end()) return known->second;
  SymExpr x = parse_sympy(text, [this](std::string_view name) { return symbol(name); });
  return expressions_.emplace(text, std::move(x)).first->second;
}

/// A SymInt, SymFloat or SymBool: plain or an expression.
SymExpr ProgramReader::value(const Json& json) {
  if (json.contains("as_int")) return integer_expr(read_integer(json["as_int"]));
  if (json.contains("as_bool")) return boolean_expr(json["as_bool"].get<bool>());
  if (json.contains("as_float")) return real_expr(read_float(json["as_float"]));
  const Json& as_expr = json.at("as_expr");
  const SymExpr& x = expression(as_expr.at("expr_str").get<std::string>());
  const auto hint = as_expr.find("hint");
  if (x.op == SymOp::symbol && hint != as_expr.end() && hint->is_object() &&
      hint->contains("as_int")) {
    hints_[x.name] = read_integer(hint->at("as_int"));
  }
  return x;
}

ir::TensorType ProgramReader::tensor_type(const Json& meta) {
  ir::TensorType type;
  const auto dtype = dtype_of_scalar_type(read_integer(meta.at("dtype")));
  if (!dtype)
    damaged(
        fmt::format("the program has a tensor of the unknown dtype {}", meta.at("dtype").dump()));
  type.dtype = *dtype;
  for (const Json& size : meta.at("sizes")) {
    type.shape.push_back(to_int(value(size)));
    if (type.shape.back().constant().value_or(0) < 0)
      damaged("the program has a tensor of negative size");
  }
  return type;
}

ir::Arg ProgramReader::number_value(const std::string& name) {
  for (const Json* table : {tables_.ints, tables_.reals, tables_.bools}) {
    const auto found = table->find(name);
    if (found == table->end()) continue;
    const SymExpr x = value(*found);
    if (x.op == SymOp::number && x.kind == SymKind::real) return {x.real};
    if (x.op == SymOp::number && x.kind == SymKind::boolean) return {x.integer != 0};
    if (x.kind == SymKind::integer) return {to_int(x)};
    if (x.kind == SymKind::real) return {to_real(x)};
    return {to_bool(x)};
  }
  damaged("the program uses " + quote_text(name) + ", which nothing gives");
}

/// As the graph had them, or those that occur.
void ProgramReader::declare_dims() {
  if (origin_) {
    graph.dims = origin_->dims;
    return;
  }
  for (const std::string& torch_name : symbols_) {
    if (is_real(torch_name) || truth_symbols_.contains(torch_name)) continue;
    shape::Dim dim;
    dim.name = torch_name;
    dim.from_data = is_from_data(torch_name);
    dim.range = {dim.from_data ? shape::Range::kUnboundedBelow : 0, shape::Range::kUnbounded};
    if (const auto range = ranges_.find(torch_name); range != ranges_.end())
      dim.range = range->second;
    dim.declared = dim.range;
    const std::int64_t least = std::max<std::int64_t>(dim.range.lo, 0);
    const auto hint = hints_.find(torch_name);
    dim.hint = hint == hints_.end() ? std::min(std::max<std::int64_t>(least, 2), dim.range.hi)
                                    : hint->second;
    graph.dims.push_back(std::move(dim));
  }
}

}  // namespace modelport::pt2
