// Which nodes read symbols, and compute what is made of them.
#include "ops/onnx/numbers.h"

#include <fmt/format.h>

#include "ops/emit/symbol_of.h"
#include "ops/onnx/lower.h"
#include "shape/linear.h"

namespace modelport::ops::onnx {
namespace {

using shape::Bool;
using shape::Compare;
using shape::Linear;
using shape::linear_in;
using shape::Real;
using shape::Tree;

std::string_view comparison(Compare op) {
  switch (op) {
    case Compare::eq:
    case Compare::ne:
      return "Equal";
    case Compare::lt:
      return "Less";
    case Compare::le:
      return "LessOrEqual";
    case Compare::gt:
      return "Greater";
    case Compare::ge:
      return "GreaterOrEqual";
  }
  __builtin_unreachable();
}

std::string_view function(Real::Op op) {
  switch (op) {
    case Real::Op::add:
      return "Add";
    case Real::Op::sub:
      return "Sub";
    case Real::Op::mul:
      return "Mul";
    case Real::Op::div:
      return "Div";
    case Real::Op::pow:
      return "Pow";
    case Real::Op::min:
      return "Min";
    case Real::Op::max:
      return "Max";
    case Real::Op::neg:
      return "Neg";
    case Real::Op::abs:
      return "Abs";
    case Real::Op::sqrt:
      return "Sqrt";
    case Real::Op::exp:
      return "Exp";
    case Real::Op::log:
    case Real::Op::log2:
      return "Log";
    case Real::Op::sin:
      return "Sin";
    case Real::Op::cos:
      return "Cos";
    case Real::Op::tan:
      return "Tan";
    case Real::Op::tanh:
      return "Tanh";
    case Real::Op::number:
    case Real::Op::integer:
    case Real::Op::select:
    case Real::Op::data:
      break;
  }
  throw InternalError("a real number that is no function of others");
}

}  // namespace

void Numbers::learn_number(const ir::ScalarType& symbol, ir::ValueId tensor) {
  const std::string name = emit::symbol_of(symbol);
  if (name.empty()) return;  // a number that needs no name: known by other means
  const Dtype dtype = std::holds_alternative<Int>(symbol.symbol)    ? Dtype::i64
                      : std::holds_alternative<Real>(symbol.symbol) ? Dtype::f64
                                                                    : Dtype::boolean;
  lower_.sources().learn_number(name);
  numbers_.insert_or_assign(name, lower_.cast(lower_.reshape(tensor, {1}), dtype));
}

ir::ValueId Numbers::read(ir::ValueId tensor, std::int64_t begin, std::int64_t end) {
  return lower_.emit("Shape", {tensor}, {{"start", {Int(begin)}}, {"end", {Int(end)}}},
                     {Dtype::i64, {end - begin}});
}

ir::ValueId Numbers::size(const Int& x) {
  if (const auto number = x.constant()) return lower_.ints({*number});
  if (const auto known = known_.find(x); known != known_.end()) return known->second;
  const auto* source = lower_.sources().find_alone(x);
  const ir::ValueId value = source != nullptr ? read(source->tensor, source->axis, source->axis + 1)
                                              : compute(shape::tree(x), &x);
  known_.emplace(x, value);
  return value;
}

ir::ValueId Numbers::sizes(const std::vector<Int>& shape) {
  if (shape.empty()) return lower_.ints({});
  Values parts;
  for (std::size_t i = 0; i < shape.size();) {
    std::size_t end = i + 1;
    if (shape[i].is_constant()) {
      std::vector<std::int64_t> numbers;
      for (end = i; end < shape.size() && shape[end].is_constant(); ++end)
        numbers.push_back(*shape[end].constant());
      parts.push_back(lower_.ints(numbers));
    } else if (const auto* first = lower_.sources().find_alone(shape[i])) {
      // Sizes that lie side by side in one tensor are read together.
      for (; end < shape.size(); ++end) {
        const auto* next = lower_.sources().find_alone(shape[end]);
        const auto offset = static_cast<std::int64_t>(end - i);
        if (next == nullptr || next->tensor != first->tensor || next->axis != first->axis + offset)
          break;
      }
      const auto count = static_cast<std::int64_t>(end - i);
      parts.push_back(count == 1 ? size(shape[i])
                                 : read(first->tensor, first->axis, first->axis + count));
    } else {
      parts.push_back(size(shape[i]));
    }
    i = end;
  }
  return parts.size() == 1 ? parts[0] : lower_.concat(parts, 0);
}

ir::ValueId Numbers::symbol(const std::string& name) {
  if (const auto number = numbers_.find(name); number != numbers_.end()) return number->second;
  const auto* found = lower_.sources().find(name);
  if (found == nullptr)
    throw InternalError(fmt::format("symbol {} is used before anything has its size", name));
  const auto source = *found;  // sources may grow while it is solved
  const ir::ValueId whole = read(source.tensor, source.axis, source.axis + 1);
  if (source.alone()) return whole;
  const Linear linear = linear_in(source.size, name).value();
  const ir::ValueId part = lower_.sub(whole, size(linear.rest));
  return linear.factor == 1 ? part : lower_.div(part, lower_.ints({linear.factor}));
}

ir::ValueId Numbers::fold(std::string_view op, const std::vector<Tree>& operands) {
  ir::ValueId result = compute(operands[0], nullptr);
  for (std::size_t i = 1; i < operands.size(); ++i)
    result = lower_.binary(op, result, compute(operands[i], nullptr));
  return result;
}

/// Terms with a negative factor are subtracted.
ir::ValueId Numbers::sum(const Tree& tree) {
  ir::ValueId result = compute(tree.operands[0], nullptr);
  for (std::size_t i = 1; i < tree.operands.size(); ++i) {
    Tree term = tree.operands[i];
    bool negative = false;
    if (term.op == Tree::Op::number && term.number < 0) {
      negative = true;
      term.number = -term.number;
    } else if (term.op == Tree::Op::mul && term.operands[0].op == Tree::Op::number &&
               term.operands[0].number < 0) {
      negative = true;
      term.operands[0].number = -term.operands[0].number;
      if (term.operands[0].number == 1) {
        term.operands.erase(term.operands.begin());
        if (term.operands.size() == 1) term = Tree(term.operands[0]);
      }
    }
    result = lower_.binary(negative ? "Sub" : "Add", result, compute(term, nullptr));
  }
  return result;
}

/// ONNX divides towards zero: one less where the remainder is not 0 and has the other sign.
ir::ValueId Numbers::floor_division(const Tree& dividend, const Tree& divisor) {
  const ir::ValueId a = compute(dividend, nullptr);
  const ir::ValueId b = compute(divisor, nullptr);
  // a - mod(a, b) is a multiple of b, and Mod has the sign of the divisor as Python's has.
  return lower_.div(lower_.sub(a, lower_.binary("Mod", a, b)), b);
}

ir::ValueId Numbers::rounded(const Tree& tree) {
  const ir::ValueId x = real(*tree.real);
  switch (tree.op) {
    case Tree::Op::floor:
      return lower_.cast(lower_.unary("Floor", x), Dtype::i64);
    case Tree::Op::ceil:
      return lower_.cast(lower_.unary("Ceil", x), Dtype::i64);
    case Tree::Op::round:
      return lower_.cast(lower_.unary("Round", x), Dtype::i64);
    default:
      return lower_.cast(x, Dtype::i64);  // towards zero
  }
}

ir::ValueId Numbers::compute(const Tree& tree, const Int* whole) {
  switch (tree.op) {
    case Tree::Op::number:
      return lower_.ints({tree.number});
    case Tree::Op::symbol:
      return whole != nullptr ? symbol(tree.name) : size(Int::symbol(tree.name));
    case Tree::Op::add:
      return sum(tree);
    case Tree::Op::mul:
      return fold("Mul", tree.operands);
    case Tree::Op::pow: {
      const ir::ValueId base = compute(tree.operands[0], nullptr);
      ir::ValueId result = base;
      for (std::int64_t i = 1; i < tree.number; ++i) result = lower_.mul(result, base);
      return result;
    }
    case Tree::Op::floor_div:
      return floor_division(tree.operands[0], tree.operands[1]);
    case Tree::Op::mod:
      return fold("Mod", tree.operands);
    case Tree::Op::min:
      return fold("Min", tree.operands);
    case Tree::Op::max:
      return fold("Max", tree.operands);
    case Tree::Op::select:
      return lower_.where(truth(*tree.when), compute(tree.operands[0], nullptr),
                          compute(tree.operands[1], nullptr));
    case Tree::Op::floor:
    case Tree::Op::ceil:
    case Tree::Op::trunc:
    case Tree::Op::round:
      return rounded(tree);
  }
  __builtin_unreachable();
}

ir::ValueId Numbers::real(const Real& x) {
  const Real::Node& node = x.node();
  switch (node.op) {
    case Real::Op::number:
      return lower_.constant(Dtype::f64, {1}, {node.number});
    case Real::Op::integer:
      return lower_.cast(size(node.integer), Dtype::f64);
    case Real::Op::data:
      return symbol(node.name);
    case Real::Op::select:
      return lower_.where(truth(*node.when), real(node.operands[0]), real(node.operands[1]));
    default:
      break;
  }
  ir::ValueId result = real(node.operands[0]);
  if (node.operands.size() == 1) {
    // onnxruntime has these for f32 alone.
    if (node.op == Real::Op::cos || node.op == Real::Op::tan)
      return lower_.cast(lower_.unary(function(node.op), lower_.cast(result, Dtype::f32)),
                         Dtype::f64);
    result = lower_.unary(function(node.op), result);
    if (node.op == Real::Op::log2)
      result = lower_.mul(result, lower_.constant(Dtype::f64, {1}, {1.4426950408889634}));
    return result;
  }
  for (std::size_t i = 1; i < node.operands.size(); ++i)
    result = lower_.binary(function(node.op), result, real(node.operands[i]));
  return result;
}

ir::ValueId Numbers::truth(const Bool& x) {
  const Bool::Node& node = x.node();
  switch (node.op) {
    case Bool::Op::constant:
      return lower_.constant_ints(Dtype::boolean, {1}, {node.value ? 1 : 0});
    case Bool::Op::data:
      return symbol(node.name);
    case Bool::Op::compare_int:
    case Bool::Op::compare_real: {
      const bool integers = node.op == Bool::Op::compare_int;
      const ir::ValueId a = integers ? size(node.difference) : real(node.reals[0]);
      const ir::ValueId b = integers ? lower_.ints({0}) : real(node.reals[1]);
      const ir::ValueId truth = lower_.compare(comparison(node.compare), a, b);
      return node.compare == Compare::ne ? lower_.logical_not(truth) : truth;
    }
    case Bool::Op::logical_not:
      return lower_.logical_not(truth(node.operands[0]));
    case Bool::Op::logical_and:
    case Bool::Op::logical_or: {
      ir::ValueId result = truth(node.operands[0]);
      for (std::size_t i = 1; i < node.operands.size(); ++i)
        result = lower_.emit(node.op == Bool::Op::logical_and ? "And" : "Or",
                             {result, truth(node.operands[i])}, {}, {Dtype::boolean, {1}});
      return result;
    }
  }
  __builtin_unreachable();
}

}  // namespace modelport::ops::onnx
