// Which function of Python computes which operator, and where symbols come from.
#include "backends/pt2/sym_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "shape/linear.h"

namespace modelport::pt2 {
namespace {

/// The functions that torch's loader and verifier both take.
constexpr std::array<std::pair<SymOp, std::string_view>, 26> kTargets{{
    {SymOp::neg, "_operator.neg"},
    {SymOp::add, "_operator.add"},
    {SymOp::sub, "_operator.sub"},
    {SymOp::mul, "_operator.mul"},
    {SymOp::floor_div, "_operator.floordiv"},
    {SymOp::mod, "_operator.mod"},
    {SymOp::true_div, "_operator.truediv"},
    {SymOp::pow, "_operator.pow"},
    {SymOp::min, "torch.sym_min"},
    {SymOp::max, "torch.sym_max"},
    {SymOp::select, "torch.sym_ite"},
    {SymOp::floor, "math.floor"},
    {SymOp::ceil, "math.ceil"},
    {SymOp::trunc, "math.trunc"},
    {SymOp::to_float, "torch.sym_float"},
    {SymOp::abs, "_operator.abs"},
    {SymOp::sqrt, "torch.sym_sqrt"},
    {SymOp::eq, "_operator.eq"},
    {SymOp::ne, "_operator.ne"},
    {SymOp::lt, "_operator.lt"},
    {SymOp::le, "_operator.le"},
    {SymOp::gt, "_operator.gt"},
    {SymOp::ge, "_operator.ge"},
    {SymOp::logical_and, "_operator.and_"},
    {SymOp::logical_or, "_operator.or_"},
    {SymOp::logical_not, "torch.sym_not"},
}};

std::string_view target_of(SymOp op) {
  for (const auto& [known, target] : kTargets) {
    if (known == op) return target;
  }
  throw InternalError("a symbolic operator without a Python function");
}

std::string_view stem(std::string_view target) {
  target.remove_prefix(target.rfind('.') + 1);
  if (target.ends_with('_')) target.remove_suffix(1);
  return target;
}

std::string_view argument_name(std::size_t index) {
  constexpr std::string_view kNames = "abcdefgh";
  return kNames.substr(index, 1);
}

}  // namespace

void SymOperand::append_argument(std::string& out) const {
  if (name.empty()) return append_item(out);
  constexpr std::string_view kKinds[] = {"as_sym_int", "as_sym_float", "as_sym_bool"};
  out += fmt::format("{{\"{}\": {{\"as_name\": \"{}\"}}}}", kKinds[static_cast<int>(value.kind)],
                     name);
}

void SymOperand::append_item(std::string& out) const {
  if (!name.empty()) {
    out += fmt::format("{{\"as_name\": \"{}\"}}", name);
  } else if (value.kind == SymKind::integer) {
    out += fmt::format("{{\"as_int\": {}}}", value.integer);
  } else if (value.kind == SymKind::boolean) {
    out += fmt::format("{{\"as_bool\": {}}}", value.integer != 0);
  } else {
    out += "{\"as_float\": ";
    append_float(out, value.real);
    out += '}';
  }
}

void SymNodes::learn_sizes(const std::string& tensor, const std::vector<shape::Int>& shape) {
  sources_.learn_sizes(tensor, shape);
}

void SymNodes::learn_number(const SymExpr& symbol, const std::string& name) {
  const std::string key = key_of(symbol);
  sources_.learn_number(key);
  known_.insert_or_assign(key, SymOperand{symbol, name});
}

bool SymNodes::knows(const SymExpr& x) const {
  if (x.op == SymOp::symbol) return sources_.knows(x.name);
  return std::ranges::all_of(x.args, [&](const SymExpr& arg) { return knows(arg); });
}

SymOperand SymNodes::operand(const shape::Int& x) {
  if (const auto number = x.constant()) return {integer_expr(*number), ""};
  if (const auto known = known_integers_.find(x); known != known_integers_.end())
    return known->second;
  SymOperand result = operand(to_tree(x, symbols_.kinds()));
  known_integers_.emplace(x, result);
  return result;
}

SymOperand SymNodes::operand(const SymExpr& x) {
  if (x.op == SymOp::number) return {x, ""};
  const std::string key = key_of(x);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  SymOperand result = x.op == SymOp::symbol ? symbol(x) : fold(x);
  known_.insert_or_assign(key, result);
  return result;
}

SymOperand SymNodes::symbol(const SymExpr& x) {
  const auto* source = sources_.find(x.name);
  if (source == nullptr || !solving_.insert(x.name).second) {
    throw InternalError(fmt::format("symbol {} is used before anything has its size", x.name));
  }
  SymOperand result = solve(x, *source);
  solving_.erase(x.name);
  return result;
}

/// The symbol from the size of an axis that is linear in it.
SymOperand SymNodes::solve(const SymExpr& symbol, const Sources::Source& source) {
  if (source.alone()) return read_size(source.tensor, source.axis, symbol);
  const shape::Linear linear = shape::linear_in(source.size, symbol.name).value();
  const SymKinds& kinds = symbols_.kinds();
  const SymOperand size = read_size(source.tensor, source.axis, to_tree(source.size, kinds));
  const SymOperand part = call("_operator.sub", to_tree(source.size - linear.rest, kinds),
                               {size, operand(linear.rest)});
  return call("_operator.floordiv", symbol, {part, {integer_expr(linear.factor), ""}});
}

SymOperand SymNodes::read_size(const std::string& tensor, std::int64_t axis, const SymExpr& value) {
  NodeText node;
  node.target = "torch.ops.aten.sym_size.int";
  node.name = graph_.names().fresh("sym_size_int");
  std::string arg;
  append_tensor_argument(arg, tensor);
  append_input(node.inputs, "self", arg);
  append_input(node.inputs, "dim", fmt::format("{{\"as_int\": {}}}", axis));
  SymOperand result{value, node.name};
  result.append_argument(node.outputs);
  graph_.add_number(value.kind, node.name, symbols_.value_json(value));
  graph_.add(node);
  return result;
}

SymOperand SymNodes::call(std::string_view target, const SymExpr& value,
                          const std::vector<SymOperand>& args) {
  NodeText node;
  node.target = target;
  node.name = graph_.names().fresh(stem(target));
  for (std::size_t i = 0; i < args.size(); ++i) {
    std::string arg;
    args[i].append_argument(arg);
    append_input(node.inputs, argument_name(i), arg);
  }
  SymOperand result{value, node.name};
  result.append_argument(node.outputs);
  const bool certain = holds_ && value.kind == SymKind::boolean;
  graph_.add_number(value.kind, node.name,
                    certain ? "{\"as_bool\": true}" : symbols_.value_json(value));
  graph_.add(node);
  return result;
}

SymOperand SymNodes::fold(const SymExpr& x) {
  switch (x.op) {
    case SymOp::round:
      return rounded(x);
    case SymOp::exp:
    case SymOp::log:
    case SymOp::log2:
    case SymOp::sin:
    case SymOp::cos:
    case SymOp::tan:
    case SymOp::tanh:
      return through_tensor(x);
    default:
      break;
  }
  std::vector<SymOperand> args;
  for (const SymExpr& arg : x.args) args.push_back(operand(arg));
  const std::string_view target = target_of(x.op);
  const bool many = x.op == SymOp::min || x.op == SymOp::max;
  if (!many || args.size() <= 2) return call(target, x, args);
  const auto both = [&](const SymOperand& a, const SymOperand& b) {
    return call(target, make_expr(x.op, {a.value, b.value}), {a, b});
  };
  if (args.size() > kFewOperands) return fold_in_halves(std::move(args), both);
  SymOperand result = args[0];
  for (std::size_t i = 1; i < args.size(); ++i) result = both(result, args[i]);
  return result;
}

/// Python's round is no function that torch's loader finds: floor(x + 0.5), less one where that is
/// odd and x lay exactly between two integers.
SymOperand SymNodes::rounded(const SymExpr& x) {
  const SymExpr moved = make_expr(SymOp::add, {x.args[0], real_expr(0.5)});
  const SymExpr up = make_expr(SymOp::floor, {moved});
  const SymExpr tie = make_expr(SymOp::eq, {make_expr(SymOp::to_float, {up}), moved});
  const SymExpr odd =
      make_expr(SymOp::eq, {make_expr(SymOp::mod, {up, integer_expr(2)}), integer_expr(1)});
  const SymExpr less = make_expr(SymOp::sub, {up, integer_expr(1)});
  return operand(make_expr(SymOp::select, {make_expr(SymOp::logical_and, {tie, odd}), less, up}));
}

/// Functions that torch's verifier refuses on numbers are computed on a tensor without axes.
SymOperand SymNodes::through_tensor(const SymExpr& x) {
  constexpr std::string_view kType =
      "{\"dtype\": 8, \"sizes\": [], \"requires_grad\": false, \"device\": {\"type\": \"cpu\", "
      "\"index\": null}, "
      "\"strides\": [], \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}";
  const SymOperand inner = operand(x.args[0]);
  NodeText wrap;
  wrap.target = "torch.ops.aten.scalar_tensor.default";
  wrap.name = graph_.names().fresh("scalar_tensor");
  std::string arg;
  inner.append_argument(arg);
  append_input(wrap.inputs, "s", arg);
  append_input(wrap.inputs, "dtype", "{\"as_scalar_type\": 8}", Passing::keyword);
  append_tensor_argument(wrap.outputs, wrap.name);
  graph_.add_tensor(wrap.name, kType);
  graph_.add(wrap);

  NodeText apply;
  const std::string target = fmt::format("torch.ops.aten.{}.default", facts_of(x.op).text);
  apply.target = target;
  apply.name = graph_.names().fresh(facts_of(x.op).text);
  append_input(apply.inputs, "self", wrap.outputs);
  append_tensor_argument(apply.outputs, apply.name);
  graph_.add_tensor(apply.name, kType);
  graph_.add(apply);

  NodeText read;
  read.target = "torch.ops.aten.item.default";
  read.name = graph_.names().fresh("item");
  append_input(read.inputs, "self", apply.outputs);
  SymOperand result{x, read.name};
  result.append_argument(read.outputs);
  graph_.add_number(x.kind, read.name, symbols_.value_json(x));
  graph_.add(read);
  return result;
}

void SymNodes::require(const SymExpr& condition, const std::string& message) {
  holds_ = true;
  const SymOperand truth = operand(condition);
  holds_ = false;
  if (!truth.name.empty()) stop_unless(truth, message);
}

void SymNodes::stop_unless(const SymOperand& truth, const std::string& message) {
  NodeText node;
  node.target = "torch.ops.aten._assert_scalar.default";
  node.name = graph_.names().fresh("_assert_scalar_default");
  std::string arg;
  truth.append_argument(arg);
  append_input(node.inputs, "self", arg);
  std::string text = "{\"as_string\": ";
  append_string(text, message);
  text += '}';
  append_input(node.inputs, "assert_msg", text);
  graph_.add(node);
}

void SymNodes::require_size(const std::string& tensor, std::int64_t axis, const shape::Int& size,
                            const std::string& message) {
  // Torch tests plain sizes and those that are a symbol. What is computed from one (18 - 2*s) it
  // tests only where it does not know the symbol yet, and what it solves for loses its remainder.
  if (size.is_constant() || size.as_symbol()) return;
  const SymExpr tree = to_tree(size, symbols_.kinds());
  const SymOperand expected = operand(tree);
  const SymOperand actual = read_size(tensor, axis, tree);
  stop_unless(call("_operator.eq", boolean_expr(true), {actual, expected}), message);
}

}  // namespace modelport::pt2
