// Reads what the printer writes, with Python's operators and precedence.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <variant>

#include "shape/expression.h"
#include "shape/lexer.h"
#include "shape/names.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Value = std::variant<Int, Real, Bool>;

std::string unexpected(const Token& token) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::ranges::all_of(token.text, printable)) return "unexpected character";
  return fmt::format("unexpected '{}'", token.text);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  /// Arithmetic that fails (overflow, division by zero) is an error of the text.
  Value whole() {
    try {
      Value value = disjunction();
      if (token_.kind != Token::Kind::end) fail(unexpected(token_));
      return value;
    } catch (const ExportError& error) {
      if (error.diagnostics().at(0).code == Code::bad_text) throw;
      fail(error.diagnostics()[0].what);
    }
  }

  Int as_int(Value value) const {
    if (auto* x = std::get_if<Int>(&value)) return std::move(*x);
    fail("an integer is wanted here");
  }
  Real as_real(Value value) const {
    if (auto* x = std::get_if<Real>(&value)) return std::move(*x);
    if (auto* x = std::get_if<Int>(&value)) return Real(*x);
    fail("a number is wanted here");
  }
  Bool as_bool(Value value) const {
    if (auto* x = std::get_if<Bool>(&value)) return std::move(*x);
    fail("a condition is wanted here");
  }

 private:
  // Nodes nest up to kMaxDepth deep and print with at most two brackets a level; a leaf is one
  // more.
  static constexpr int kMaxBrackets = 2 * kMaxDepth + 4;

  [[noreturn]] void fail(std::string_view what) const { lexer_.fail(token_.column, what); }

  void advance() { token_ = lexer_.next(); }
  bool accept(std::string_view sign) {
    if (token_.kind != Token::Kind::sign || token_.text != sign) return false;
    advance();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) fail(fmt::format("expected '{}'", sign));
  }
  bool accept_word(std::string_view word) {
    if (token_.kind != Token::Kind::name || token_.text != word) return false;
    advance();
    return true;
  }

  struct Nesting {
    explicit Nesting(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kMaxBrackets) parser.fail("nested too deeply");
    }
    ~Nesting() { --parser.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser;
  };

  Value disjunction();
  Value conjunction();
  Value negation();
  Value comparison();
  Value sum();
  Value product();
  Value unary();
  Value power();
  Value primary();
  Value literal();
  Value call(std::string_view name);
  Value binary(std::string_view sign, const Value& a, const Value& b) const;
  Value real_function(std::string_view name, std::vector<Value> arguments) const;

  Lexer lexer_;
  Token token_;
  int depth_ = 0;
};

Value Parser::disjunction() {
  Value left = conjunction();
  while (accept_word("or")) left = as_bool(std::move(left)) || as_bool(conjunction());
  return left;
}

Value Parser::conjunction() {
  Value left = negation();
  while (accept_word("and")) left = as_bool(std::move(left)) && as_bool(negation());
  return left;
}

Value Parser::negation() {
  bool negative = false;
  bool any = false;
  while (accept_word("not")) {
    negative = !negative;
    any = true;
  }
  Value value = comparison();
  if (!any) return value;
  Bool condition = as_bool(std::move(value));
  return negative ? !condition : condition;
}

Value Parser::comparison() {
  Value left = sum();
  static constexpr std::pair<std::string_view, Compare> kSigns[] = {
      {"==", Compare::eq}, {"!=", Compare::ne}, {"<=", Compare::le},
      {">=", Compare::ge}, {"<", Compare::lt},  {">", Compare::gt}};
  for (const auto& [sign, op] : kSigns) {
    if (!accept(sign)) continue;
    Value right = sum();
    const auto* a = std::get_if<Int>(&left);
    const auto* b = std::get_if<Int>(&right);
    if (a != nullptr && b != nullptr) return Bool::compare(op, *a, *b);
    return Bool::compare(op, as_real(std::move(left)), as_real(std::move(right)));
  }
  return left;
}

Value Parser::sum() {
  Value left = product();
  while (true) {
    if (accept("+")) {
      left = binary("+", left, product());
    } else if (accept("-")) {
      left = binary("-", left, product());
    } else {
      return left;
    }
  }
}

Value Parser::product() {
  Value left = unary();
  while (true) {
    bool found = false;
    for (const std::string_view sign : {"*", "//", "/", "%"}) {
      if (!accept(sign)) continue;
      left = binary(sign, left, unary());
      found = true;
      break;
    }
    if (!found) return left;
  }
}

Value Parser::unary() {
  bool negative = false;
  bool any = false;
  while (accept("-")) {
    negative = !negative;
    any = true;
    // The one number whose magnitude does not fit.
    if (negative && token_.kind == Token::Kind::integer && token_.text == "9223372036854775808") {
      advance();
      if (token_.kind == Token::Kind::sign && token_.text == "**") fail("the number is too large");
      return Int(INT64_MIN);
    }
  }
  Value value = power();
  if (!any) return value;
  if (auto* x = std::get_if<Int>(&value)) return negative ? -*x : *x;
  Real real = as_real(std::move(value));
  return negative ? Real::unary(Real::Op::neg, real) : real;
}

Value Parser::power() {
  Value base = primary();
  if (!accept("**")) return base;
  const Nesting nesting(*this);
  Value exponent = unary();
  const auto* x = std::get_if<Int>(&base);
  const auto* n = std::get_if<Int>(&exponent);
  if (x != nullptr && n != nullptr && n->is_constant() && *n->constant() >= 0)
    return pow(*x, *n->constant());
  return Real::binary(Real::Op::pow, as_real(std::move(base)), as_real(std::move(exponent)));
}

Value Parser::primary() {
  const Nesting nesting(*this);
  if (accept("(")) {
    Value value = disjunction();
    expect(")");
    return value;
  }
  const Token token = token_;
  switch (token.kind) {
    case Token::Kind::integer:
    case Token::Kind::real:
      return literal();
    case Token::Kind::quoted:
      advance();
      return Int::symbol(token.text);
    case Token::Kind::name:
      break;
    case Token::Kind::end:
      fail("the text ends where a value is wanted");
    case Token::Kind::sign:
      fail(unexpected(token));
  }
  advance();
  if (token.text == "true") return Bool(true);
  if (token.text == "false") return Bool(false);
  if (token.text == "inf") return Real(std::numeric_limits<double>::infinity());
  if (token.text == "nan") return Real(std::numeric_limits<double>::quiet_NaN());
  if (is_reserved(token.text)) fail(unexpected(token));
  if (token_.kind == Token::Kind::sign && token_.text == "(") return call(token.text);
  return Int::symbol(token.text);
}

Value Parser::literal() {
  const Token token = token_;
  const char* first = token.text.data();
  const char* last = first + token.text.size();
  Value value;
  if (token.kind == Token::Kind::integer) {
    std::int64_t number = 0;
    if (std::from_chars(first, last, number).ec != std::errc()) fail("the number is too large");
    value = Int(number);
  } else {
    double number = 0;
    if (std::from_chars(first, last, number).ec != std::errc()) fail("the number is out of range");
    value = Real(number);
  }
  advance();
  return value;
}

Value Parser::call(std::string_view name) {
  expect("(");
  if (name == "real" || name == "bool") {
    const Token token = token_;
    if (token.kind != Token::Kind::name && token.kind != Token::Kind::quoted)
      fail("a name is wanted here");
    if (token.kind == Token::Kind::name && is_reserved(token.text)) fail("a name is wanted here");
    advance();
    expect(")");
    if (name == "real") return Real::data(token.text);
    return Bool::data(token.text);
  }
  std::vector<Value> arguments;
  do {
    arguments.push_back(disjunction());
  } while (accept(","));
  expect(")");
  const auto want = [&](std::size_t count) {
    if (arguments.size() != count) fail(fmt::format("'{}' takes {} arguments", name, count));
  };
  if (name == "min" || name == "max") {
    Value result = arguments[0];
    for (std::size_t i = 1; i < arguments.size(); ++i) result = binary(name, result, arguments[i]);
    if (std::holds_alternative<Bool>(result)) fail("a number is wanted here");
    return result;
  }
  if (name == "select") {
    want(3);
    const Bool when = as_bool(arguments[0]);
    const auto* a = std::get_if<Int>(&arguments[1]);
    const auto* b = std::get_if<Int>(&arguments[2]);
    if (a != nullptr && b != nullptr) return select(when, *a, *b);
    return Real::select(when, as_real(arguments[1]), as_real(arguments[2]));
  }
  want(1);
  return real_function(name, std::move(arguments));
}

Value Parser::real_function(std::string_view name, std::vector<Value> arguments) const {
  const Real x = as_real(std::move(arguments[0]));
  if (name == "float") return x;
  if (name == "floor") return floor(x);
  if (name == "ceil") return ceil(x);
  if (name == "trunc") return trunc(x);
  if (name == "round") return round(x);
  using Op = Real::Op;
  static constexpr std::pair<std::string_view, Op> kFunctions[] = {
      {"abs", Op::abs}, {"sqrt", Op::sqrt}, {"exp", Op::exp}, {"log", Op::log},  {"log2", Op::log2},
      {"sin", Op::sin}, {"cos", Op::cos},   {"tan", Op::tan}, {"tanh", Op::tanh}};
  for (const auto& [known, op] : kFunctions) {
    if (known == name) return Real::unary(op, x);
  }
  fail(fmt::format("no function '{}'", name));
}

Value Parser::binary(std::string_view sign, const Value& a, const Value& b) const {
  const auto* x = std::get_if<Int>(&a);
  const auto* y = std::get_if<Int>(&b);
  if (x != nullptr && y != nullptr && sign != "/") {
    if (sign == "+") return *x + *y;
    if (sign == "-") return *x - *y;
    if (sign == "*") return *x * *y;
    if (sign == "//") return floor_div(*x, *y);
    if (sign == "%") return mod(*x, *y);
    if (sign == "min") return min(*x, *y);
    return max(*x, *y);
  }
  using Op = Real::Op;
  static constexpr std::pair<std::string_view, Op> kSigns[] = {{"+", Op::add},   {"-", Op::sub},
                                                               {"*", Op::mul},   {"/", Op::div},
                                                               {"min", Op::min}, {"max", Op::max}};
  for (const auto& [known, op] : kSigns) {
    if (known == sign) return Real::binary(op, as_real(a), as_real(b));
  }
  fail(fmt::format("'{}' is for integers", sign));
}

}  // namespace

Int parse_int(std::string_view text) {
  Parser parser(text);
  return parser.as_int(parser.whole());
}

Real parse_real(std::string_view text) {
  Parser parser(text);
  return parser.as_real(parser.whole());
}

Bool parse_bool(std::string_view text) {
  Parser parser(text);
  return parser.as_bool(parser.whole());
}

}  // namespace modelport::shape
