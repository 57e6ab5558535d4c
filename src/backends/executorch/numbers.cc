// Which instructions compute a symbolic number.
#include "backends/executorch/numbers.h"

#include <fmt/format.h>

#include "base/error.h"
#include "ops/emit/symbol_of.h"
#include "shape/linear.h"

namespace modelport::executorch {
namespace {

using shape::Bool;
using shape::Compare;
using shape::Int;
using shape::Real;
using shape::Tree;

constexpr std::string_view kAdd = "executorch_prim::add.Scalar";
constexpr std::string_view kSub = "executorch_prim::sub.Scalar";
constexpr std::string_view kMul = "executorch_prim::mul.Scalar";
constexpr std::string_view kFloorDiv = "executorch_prim::floordiv.Scalar";

std::string_view comparison(Compare op) {
  switch (op) {
    case Compare::eq:
    case Compare::ne:
      return "executorch_prim::eq.Scalar";
    case Compare::lt:
      return "executorch_prim::lt.Scalar";
    case Compare::le:
      return "executorch_prim::le.Scalar";
    case Compare::gt:
      return "executorch_prim::gt.Scalar";
    case Compare::ge:
      return "executorch_prim::ge.Scalar";
  }
  __builtin_unreachable();
}

/// The kernel for tensors of one element, for what the runtime has no operator on numbers.
std::string_view tensor_kernel(Real::Op op) {
  switch (op) {
    case Real::Op::pow:
      return "aten::pow.Tensor_Tensor_out";
    case Real::Op::abs:
      return "aten::abs.out";
    case Real::Op::sqrt:
      return "aten::sqrt.out";
    case Real::Op::exp:
      return "aten::exp.out";
    case Real::Op::log:
      return "aten::log.out";
    case Real::Op::log2:
      return "aten::log2.out";
    case Real::Op::sin:
      return "aten::sin.out";
    case Real::Op::cos:
      return "aten::cos.out";
    case Real::Op::tan:
      return "aten::tan.out";
    case Real::Op::tanh:
      return "aten::tanh.out";
    default:
      throw InternalError("a real number that no kernel computes");
  }
}

}  // namespace

void RuntimeNumbers::learn_number(const ir::ScalarType& symbol, Index value) {
  const std::string name = ops::emit::symbol_of(symbol);
  if (name.empty()) return;
  sources_.learn_number(name);
  numbers_.insert_or_assign(name, value);
}

/// Operators on numbers have their result as the last argument, once. The same operator on the same
/// numbers gives the same.
Index RuntimeNumbers::call(std::string_view kernel, std::vector<Index> args, Result result) {
  const auto [known, added] = computed_.try_emplace({std::string(kernel), args}, Index{0});
  if (!added) return known->second;
  const Index out = result == Result::integer  ? table_.slot_for_int()
                    : result == Result::number ? table_.slot_for_double()
                                               : table_.slot_for_bool();
  known->second = out;
  args.push_back(out);
  table_.method().call(kernel, std::move(args), {});
  return out;
}

Index RuntimeNumbers::integer(const Int& x) {
  if (const auto number = x.constant()) return table_.literal(*number);
  if (const auto known = known_.find(x); known != known_.end()) return known->second;
  const Index value = compute(shape::tree(x), &x);
  known_.emplace(x, value);
  return value;
}

Index RuntimeNumbers::symbol(const std::string& name) {
  if (const auto number = numbers_.find(name); number != numbers_.end()) return number->second;
  const auto* source = sources_.find(name);
  if (source == nullptr)
    throw InternalError(fmt::format("symbol {} is used before anything has its size", name));
  const Index whole =
      call("aten::sym_size.int", {source->tensor, table_.literal(source->axis)}, Result::integer);
  if (source->alone()) return whole;
  const shape::Linear linear = shape::linear_in(source->size, name).value();
  const Index part = call(kSub, {whole, integer(linear.rest)}, Result::integer);
  if (linear.factor == 1) return part;
  return call(kFloorDiv, {part, table_.literal(linear.factor)}, Result::integer);
}

Index RuntimeNumbers::fold(std::string_view kernel, const std::vector<Tree>& operands) {
  Index result = compute(operands[0], nullptr);
  for (std::size_t i = 1; i < operands.size(); ++i)
    result = call(kernel, {result, compute(operands[i], nullptr)}, Result::integer);
  return result;
}

/// Terms with a negative factor are subtracted.
Index RuntimeNumbers::sum(const Tree& tree) {
  Index result = compute(tree.operands[0], nullptr);
  for (std::size_t i = 1; i < tree.operands.size(); ++i) {
    Tree term = tree.operands[i];
    Tree* number = term.op == Tree::Op::number ? &term
                   : term.op == Tree::Op::mul  ? &term.operands[0]
                                               : nullptr;
    const bool negative = number != nullptr && number->op == Tree::Op::number && number->number < 0;
    if (negative) number->number = -number->number;
    result = call(negative ? kSub : kAdd, {result, compute(term, nullptr)}, Result::integer);
  }
  return result;
}

/// The runtime's mod has the sign of the dividend, Python's that of the divisor.
Index RuntimeNumbers::remainder(const Tree& tree) {
  const Index a = compute(tree.operands[0], nullptr);
  const Index b = compute(tree.operands[1], nullptr);
  const Index quotient = call(kFloorDiv, {a, b}, Result::integer);
  const Index multiple = call(kMul, {quotient, b}, Result::integer);
  return call(kSub, {a, multiple}, Result::integer);
}

Index RuntimeNumbers::rounded(const Tree& tree) {
  const Index x = real(*tree.real);
  switch (tree.op) {
    case Tree::Op::ceil:
      return call("executorch_prim::ceil.Scalar", {x}, Result::integer);
    case Tree::Op::floor: {  // -ceil(-x): there is no operator for it
      const Index negative = call("executorch_prim::neg.Scalar", {x}, Result::number);
      const Index up = call("executorch_prim::ceil.Scalar", {negative}, Result::integer);
      return call("executorch_prim::neg.Scalar", {up}, Result::integer);
    }
    case Tree::Op::round: {  // the kernel rounds half to even; the operator on numbers does not
      const Index even = through_tensors("aten::round.out", {x});
      return call("executorch_prim::trunc.Scalar", {even}, Result::integer);
    }
    default:
      return call("executorch_prim::trunc.Scalar", {x}, Result::integer);
  }
}

Index RuntimeNumbers::compute(const Tree& tree, const Int* whole) {
  switch (tree.op) {
    case Tree::Op::number:
      return table_.literal(tree.number);
    case Tree::Op::symbol:
      return whole != nullptr ? symbol(tree.name) : integer(Int::symbol(tree.name));
    case Tree::Op::add:
      return sum(tree);
    case Tree::Op::mul: {
      const bool by_one = tree.operands[0].op == Tree::Op::number && tree.operands[0].number == 1;
      if (!by_one) return fold(kMul, tree.operands);
      return fold(kMul, {tree.operands.begin() + 1, tree.operands.end()});
    }
    case Tree::Op::pow: {
      const Index base = compute(tree.operands[0], nullptr);
      Index result = base;
      for (std::int64_t i = 1; i < tree.number; ++i)
        result = call(kMul, {result, base}, Result::integer);
      return result;
    }
    case Tree::Op::floor_div:
      return fold(kFloorDiv, tree.operands);
    case Tree::Op::mod:
      return remainder(tree);
    case Tree::Op::min:
      return fold("executorch_prim::sym_min.Scalar", tree.operands);
    case Tree::Op::max:
      return fold("executorch_prim::sym_max.Scalar", tree.operands);
    case Tree::Op::select:
      return select(*tree.when, compute(tree.operands[0], nullptr),
                    compute(tree.operands[1], nullptr), Result::integer);
    case Tree::Op::floor:
    case Tree::Op::ceil:
    case Tree::Op::trunc:
    case Tree::Op::round:
      return rounded(tree);
  }
  __builtin_unreachable();
}

Index RuntimeNumbers::select(const Bool& when, Index a, Index b, Result result) {
  return call("executorch_prim::sym_ite.Scalar", {truth(when), a, b}, result);
}

Index RuntimeNumbers::real(const Real& x) {
  const Real::Node& node = x.node();
  if (node.op == Real::Op::number) return table_.literal(node.number);
  if (node.op == Real::Op::data) return symbol(node.name);
  const std::string text = shape::print(x);
  if (const auto known = known_reals_.find(text); known != known_reals_.end()) return known->second;
  const Index value = real_function(node);
  known_reals_.emplace(text, value);
  return value;
}

Index RuntimeNumbers::real_function(const Real::Node& node) {
  const auto binary = [&](std::string_view kernel) {
    Index result = real(node.operands[0]);
    for (std::size_t i = 1; i < node.operands.size(); ++i)
      result = call(kernel, {result, real(node.operands[i])}, Result::number);
    return result;
  };
  switch (node.op) {
    case Real::Op::integer:
      return call("executorch_prim::sym_float.Scalar", {integer(node.integer)}, Result::number);
    case Real::Op::add:
      return binary(kAdd);
    case Real::Op::sub:
      return binary(kSub);
    case Real::Op::mul:
      return binary(kMul);
    case Real::Op::div:
      return binary("executorch_prim::truediv.Scalar");
    case Real::Op::neg:
      return call("executorch_prim::neg.Scalar", {real(node.operands[0])}, Result::number);
    case Real::Op::select:
      return select(*node.when, real(node.operands[0]), real(node.operands[1]), Result::number);
    case Real::Op::min:
    case Real::Op::max:
      return extreme(node);
    default:
      break;
  }
  std::vector<Index> operands;
  for (const Real& operand : node.operands) operands.push_back(real(operand));
  return through_tensors(tensor_kernel(node.op), operands);
}

/// The runtime's min and max take integers only.
Index RuntimeNumbers::extreme(const Real::Node& node) {
  const std::string_view first_wins =
      node.op == Real::Op::min ? "executorch_prim::le.Scalar" : "executorch_prim::ge.Scalar";
  Index result = real(node.operands[0]);
  for (std::size_t i = 1; i < node.operands.size(); ++i) {
    const Index other = real(node.operands[i]);
    const Index first = call(first_wins, {result, other}, Result::truth);
    result = call("executorch_prim::sym_ite.Scalar", {first, result, other}, Result::number);
  }
  return result;
}

/// Into tensors of one f64, through the kernel, and out again.
Index RuntimeNumbers::through_tensors(std::string_view kernel, const std::vector<Index>& operands) {
  std::vector<Index> args;
  for (const Index operand : operands) {
    const Index tensor = table_.tensor({.dtype = Dtype::f64});
    table_.method().call("aten::scalar_tensor.out", {operand, tensor, tensor}, {tensor});
    args.push_back(tensor);
  }
  const Index result = table_.tensor({.dtype = Dtype::f64});
  args.insert(args.end(), {result, result});
  table_.method().call(kernel, std::move(args), {result});
  return call("aten::_local_scalar_dense", {result}, Result::number);
}

Index RuntimeNumbers::as_int(const Bool& x) {
  return call("executorch_prim::sym_ite.Scalar",
              {truth(x), table_.literal(std::int64_t{1}), table_.literal(std::int64_t{0})},
              Result::integer);
}

Index RuntimeNumbers::truth(const Bool& x) {
  const Bool::Node& node = x.node();
  const auto negated = [&](Index value) {
    return call("executorch_prim::sym_not.Scalar", {value}, Result::truth);
  };
  switch (node.op) {
    case Bool::Op::constant:
      return table_.literal(node.value);
    case Bool::Op::data:
      return symbol(node.name);
    case Bool::Op::compare_int:
    case Bool::Op::compare_real: {
      const bool integers = node.op == Bool::Op::compare_int;
      const Index a = integers ? integer(node.difference) : real(node.reals[0]);
      const Index b = integers ? table_.literal(std::int64_t{0}) : real(node.reals[1]);
      const Index value = call(comparison(node.compare), {a, b}, Result::truth);
      return node.compare == Compare::ne ? negated(value) : value;
    }
    case Bool::Op::logical_not:
      return negated(truth(node.operands[0]));
    case Bool::Op::logical_and:
    case Bool::Op::logical_or: {  // there is no operator for either: the least or greatest of 0, 1
      const std::string_view kernel = node.op == Bool::Op::logical_and
                                          ? "executorch_prim::sym_min.Scalar"
                                          : "executorch_prim::sym_max.Scalar";
      Index result = as_int(node.operands[0]);
      for (std::size_t i = 1; i < node.operands.size(); ++i)
        result = call(kernel, {result, as_int(node.operands[i])}, Result::integer);
      return call("executorch_prim::gt.Scalar", {result, table_.literal(std::int64_t{0})},
                  Result::truth);
    }
  }
  __builtin_unreachable();
}

}  // namespace modelport::executorch
