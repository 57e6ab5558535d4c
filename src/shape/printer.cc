// Expressions as text that parses back to the same expression.
#include <fmt/format.h>

#include <cmath>

#include "shape/expression.h"
#include "shape/names.h"
#include "shape/tree.h"

namespace modelport::shape {

using namespace detail;

namespace {

/// How tightly a piece of text binds, as in Python.
enum Level { kOr, kAnd, kNot, kComparison, kSum, kProduct, kUnary, kPower, kPrimary };

struct Piece {
  std::string text;
  Level level = kPrimary;
};

std::string bracketed(const Piece& piece, Level least) {
  return piece.level >= least ? piece.text : '(' + piece.text + ')';
}

Piece piece_of(const Tree& x);

std::string call(std::string_view name, const std::vector<Tree>& operands) {
  std::string text;
  for (const Tree& operand : operands) {
    if (!text.empty()) text += ", ";
    text += piece_of(operand).text;
  }
  return fmt::format("{}({})", name, text);
}

Piece product_piece(const std::vector<Tree>& factors) {
  std::string text;
  std::size_t start = 0;
  if (factors[0].op == Tree::Op::number && factors[0].number == -1) {
    text = "-";
    start = 1;
  }
  for (std::size_t i = start; i < factors.size(); ++i) {
    if (i > start) text += '*';
    text += bracketed(piece_of(factors[i]), factors[i].op == Tree::Op::number ? kUnary : kPower);
  }
  return {text, text[0] == '-' && factors.size() == 2 && start == 1 ? kUnary : kProduct};
}

bool is_negative(const Tree& x) {
  const Tree& number = x.op == Tree::Op::mul ? x.operands[0] : x;
  return number.op == Tree::Op::number && number.number < 0;
}

/// Of a number, or of a term with a negative number; false where that does not fit.
bool flip_sign(Tree& x) {
  Tree& number = x.op == Tree::Op::mul ? x.operands[0] : x;
  if (number.op != Tree::Op::number || number.number == INT64_MIN) return false;
  number.number = -number.number;
  if (x.op != Tree::Op::mul || number.number != 1) return true;
  x.operands.erase(x.operands.begin());
  if (x.operands.size() == 1) {
    Tree only = std::move(x.operands[0]);
    x = std::move(only);
  }
  return true;
}

Piece sum_piece(std::span<const Tree> operands) {
  std::string text;
  for (const Tree& operand : operands) {
    Tree positive = operand;
    if (text.empty()) {
      text = bracketed(piece_of(operand), kProduct);
    } else if (is_negative(operand) && flip_sign(positive)) {
      text += " - " + bracketed(piece_of(positive), kProduct);
    } else {
      text += " + " + bracketed(piece_of(operand), kProduct);
    }
  }
  return {text.empty() ? "0" : text, operands.size() < 2 ? kProduct : kSum};
}

Piece piece_of(const Tree& x) {
  using Op = Tree::Op;
  const auto division = [&](std::string_view sign) -> Piece {
    const Level left = x.operands[0].op == Op::mul ? kProduct : kPower;
    return {bracketed(piece_of(x.operands[0]), left) + std::string(sign) +
                bracketed(piece_of(x.operands[1]), kPrimary),
            kProduct};
  };
  switch (x.op) {
    case Op::number:
      return {fmt::format("{}", x.number), x.number < 0 ? kUnary : kPrimary};
    case Op::symbol:
      return {print_name(x.name)};
    case Op::add:
      return sum_piece(x.operands);
    case Op::mul:
      return product_piece(x.operands);
    case Op::pow:
      return {fmt::format("{}**{}", bracketed(piece_of(x.operands[0]), kPrimary), x.number),
              kPower};
    case Op::floor_div:
      return division("//");
    case Op::mod:
      return division("%");
    case Op::min:
      return {call("min", x.operands)};
    case Op::max:
      return {call("max", x.operands)};
    case Op::select:
      return {fmt::format("select({}, {}, {})", print(*x.when), piece_of(x.operands[0]).text,
                          piece_of(x.operands[1]).text)};
    case Op::floor:
      return {fmt::format("floor({})", print(*x.real))};
    case Op::ceil:
      return {fmt::format("ceil({})", print(*x.real))};
    case Op::trunc:
      return {fmt::format("trunc({})", print(*x.real))};
    case Op::round:
      return {fmt::format("round({})", print(*x.real))};
  }
  __builtin_unreachable();
}

std::string_view name_of(Real::Op op) {
  using Op = Real::Op;
  switch (op) {
    case Op::add:
      return " + ";
    case Op::sub:
      return " - ";
    case Op::mul:
      return "*";
    case Op::div:
      return "/";
    case Op::pow:
      return "**";
    case Op::min:
      return "min";
    case Op::max:
      return "max";
    case Op::abs:
      return "abs";
    case Op::sqrt:
      return "sqrt";
    case Op::exp:
      return "exp";
    case Op::log:
      return "log";
    case Op::log2:
      return "log2";
    case Op::sin:
      return "sin";
    case Op::cos:
      return "cos";
    case Op::tan:
      return "tan";
    case Op::tanh:
      return "tanh";
    default:
      throw InternalError("a real without a name");
  }
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Piece piece_of(const Real& x);

/// An integer among reals needs no float(): the other operand makes the operation one of reals.
Piece beside_a_real(const Real& x) {
  const bool plain = x.node().op == Real::Op::integer;
  return plain ? Piece{bracketed(piece_of(tree(x.node().integer)), kPower), kPrimary} : piece_of(x);
}

Piece binary_piece(const Real::Node& node) {
  using Op = Real::Op;
  const Real& a = node.operands[0];
  const Real& b = node.operands[1];
  const bool integers = a.node().op == Op::integer && b.node().op == Op::integer;
  const Piece left = integers && node.op != Op::div ? piece_of(a) : beside_a_real(a);
  const Piece right = beside_a_real(b);
  const auto join = [&](Level level, Level least_left, Level least_right) -> Piece {
    return {
        bracketed(left, least_left) + std::string(name_of(node.op)) + bracketed(right, least_right),
        level};
  };
  switch (node.op) {
    case Op::add:
    case Op::sub:
      return join(kSum, kSum, kProduct);
    case Op::mul:
    case Op::div:
      return join(kProduct, kProduct, kUnary);
    case Op::pow:
      return join(kPower, kPrimary, kUnary);
    default:
      return {fmt::format("{}({}, {})", name_of(node.op), left.text, right.text)};
  }
}

Piece piece_of(const Real& x) {
  using Op = Real::Op;
  const Real::Node& node = x.node();
  switch (node.op) {
    case Op::number:
      return {number_text(node.number),
              std::signbit(node.number) && !std::isnan(node.number) ? kUnary : kPrimary};
    case Op::integer:
      return {fmt::format("float({})", print(node.integer))};
    case Op::data:
      return {fmt::format("real({})", print_name(node.name))};
    case Op::select:
      return {fmt::format("select({}, {}, {})", print(*node.when), piece_of(node.operands[0]).text,
                          piece_of(node.operands[1]).text)};
    case Op::neg:
      return {"-" + bracketed(piece_of(node.operands[0]), kUnary), kUnary};
    default:
      break;
  }
  if (node.operands.size() == 2) return binary_piece(node);
  return {fmt::format("{}({})", name_of(node.op), beside_a_real(node.operands[0]).text)};
}

std::string_view sign_of(Compare op) {
  switch (op) {
    case Compare::eq:
      return "==";
    case Compare::ne:
      return "!=";
    case Compare::lt:
      return "<";
    case Compare::le:
      return "<=";
    case Compare::gt:
      return ">";
    case Compare::ge:
      return ">=";
  }
  __builtin_unreachable();
}

/// "total == past + seq": what is subtracted goes to the other side, a number to the right, a lone
/// symbol to the left.
std::string comparison_text(Compare op, const Int& difference) {
  Tree whole = tree(difference);
  std::vector<Tree> terms;
  if (whole.op == Tree::Op::add) {
    terms = std::move(whole.operands);
  } else {
    terms.push_back(std::move(whole));
  }
  std::vector<Tree> left, right;
  std::optional<Tree> number;
  for (Tree& term : terms) {
    if (term.op == Tree::Op::number) {
      number = std::move(term);
      continue;
    }
    const bool moved = is_negative(term);
    if (moved && !flip_sign(term)) return fmt::format("{} {} 0", print(difference), sign_of(op));
    (moved ? right : left).push_back(std::move(term));
  }
  if (number) {
    const bool stays = left.empty() || (!right.empty() && number->number > 0);
    if (!stays && !flip_sign(*number))
      return fmt::format("{} {} 0", print(difference), sign_of(op));
    (stays ? left : right).push_back(std::move(*number));
  }
  const bool number_first = left.empty() || (left.size() == 1 && left[0].op == Tree::Op::number);
  const bool symbol_last =
      op != Compare::ge && left.size() > 1 && right.size() == 1 && right[0].op == Tree::Op::symbol;
  if (number_first || symbol_last) {
    std::swap(left, right);
    if (op == Compare::ge) op = Compare::le;
  }
  return fmt::format("{} {} {}", sum_piece(left).text, sign_of(op), sum_piece(right).text);
}

Piece piece_of(const Bool& x) {
  using Op = Bool::Op;
  const Bool::Node& node = x.node();
  switch (node.op) {
    case Op::constant:
      return {node.value ? "true" : "false"};
    case Op::compare_int:
      return {comparison_text(node.compare, node.difference), kComparison};
    case Op::compare_real: {
      const Real& a = node.reals[0];
      const Real& b = node.reals[1];
      return {fmt::format("{} {} {}", bracketed(piece_of(a), kSum), sign_of(node.compare),
                          bracketed(piece_of(b), kSum)),
              kComparison};
    }
    case Op::logical_and:
    case Op::logical_or: {
      const bool is_and = node.op == Op::logical_and;
      std::string text;
      for (const Bool& operand : node.operands) {
        if (!text.empty()) text += is_and ? " and " : " or ";
        text += bracketed(piece_of(operand), is_and ? kNot : kAnd);
      }
      return {text, is_and ? kAnd : kOr};
    }
    case Op::logical_not:
      return {"not " + bracketed(piece_of(node.operands[0]), kPrimary), kNot};
    case Op::data:
      return {fmt::format("bool({})", print_name(node.name))};
  }
  __builtin_unreachable();
}

}  // namespace

std::string print(const Int& x) { return piece_of(tree(x)).text; }
std::string print(const Real& x) { return piece_of(x).text; }
std::string print(const Bool& x) { return piece_of(x).text; }

}  // namespace modelport::shape
