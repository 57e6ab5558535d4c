// Reads sympy's text: calls, names, numbers and quoted words, nothing else.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "backends/pt2/sympy_text.h"
#include "base/error.h"
#include "base/json.h"

namespace modelport::pt2 {
namespace {

constexpr int kMaxDepth = 128;
constexpr std::size_t kLongest = 1 << 16;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class Parser {
 public:
  Parser(std::string_view text, const ReadSymbol& read_symbol)
      : text_(text), read_symbol_(read_symbol) {}

  SymExpr all() {
    if (text_.size() > kLongest) fail("it is too long");
    SymExpr x = expression();
    skip();
    if (at_ != text_.size()) fail("something is left over");
    return x;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw ExportError(Diagnostic{
        .code = Code::bad_file,
        .what = fmt::format("the program has a symbolic number {} that cannot be read: {}",
                            quote_text(text_), why),
        .where = {},
        .module_path = {},
        .notes = {},
        .ways_out = {"export the model with modelport.capture instead"}});
  }

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}' belongs at column {}", c, at_ + 1));
  }

  std::string_view identifier() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view quoted_word() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a name in quotes belongs here");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) ++at_;
    const std::string_view result = text_.substr(begin, at_ - begin);
    expect(quote);
    return result;
  }

  std::int64_t integer() {
    skip();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("an integer belongs here");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  /// Whether "name=" comes next.
  bool at_option() {
    const std::size_t begin = at_;
    const bool result = !identifier().empty() && take('=');
    at_ = begin;
    return result;
  }

  void skip_option() {
    if (identifier().empty()) fail("an option belongs here");
    expect('=');
    if (identifier().empty()) fail("a value belongs here");
  }

  /// ", positive=True, integer=True)" says nothing that ranges do not say.
  void skip_options() {
    while (!take(')')) {
      expect(',');
      skip_option();
    }
  }

  SymExpr expression() {
    if (++depth_ > kMaxDepth) fail("it is nested too deeply");
    skip();
    const bool number =
        at_ < text_.size() && (text_[at_] == '-' || (text_[at_] >= '0' && text_[at_] <= '9'));
    SymExpr x = number ? integer_expr(integer()) : named();
    --depth_;
    return x;
  }

  SymExpr named() {
    const std::string_view name = identifier();
    if (name.empty()) fail(fmt::format("a name belongs at column {}", at_ + 1));
    if (take('(')) return call(name);
    if (name == "true" || name == "false") return boolean_expr(name == "true");
    if (name == "oo") return real_expr(HUGE_VAL);
    return read_symbol_(name);
  }

  SymExpr call(std::string_view name) {
    if (name == "Symbol") {
      SymExpr x = read_symbol_(quoted_word());
      skip_options();
      return x;
    }
    if (name == "Integer") {
      SymExpr x = integer_expr(integer());
      expect(')');
      return x;
    }
    if (name == "Float") return real();
    std::vector<SymExpr> args;
    if (!take(')')) {
      do {
        if (at_option()) {  // "evaluate=False", how sympy is to make it
          skip_option();
        } else {
          args.push_back(expression());
        }
      } while (take(','));
      expect(')');
    }
    return operation(name, std::move(args));
  }

  SymExpr real() {
    const std::string_view digits = quoted_word();
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      fail("a fraction belongs here");
    skip_options();
    return real_expr(value);
  }

  SymExpr operation(std::string_view name, std::vector<SymExpr> args) {
    const auto need = [&](std::size_t count) {
      if (args.size() != count) fail(fmt::format("{} has {} operands", name, args.size()));
    };
    if (name == "Identity") {
      need(1);
      return std::move(args[0]);
    }
    if (name == "Rational") {
      need(2);
      return make_expr(SymOp::true_div, std::move(args));
    }
    if (name == "CeilDiv") {  // -(-a // b)
      need(2);
      SymExpr negative = make_expr(SymOp::neg, {std::move(args[0])});
      return make_expr(SymOp::neg,
                       {make_expr(SymOp::floor_div, {std::move(negative), std::move(args[1])})});
    }
    if (name == "ModularIndexing") {  // (a // b) % c
      need(3);
      SymExpr quotient = make_expr(SymOp::floor_div, {std::move(args[0]), std::move(args[1])});
      return make_expr(SymOp::mod, {std::move(quotient), std::move(args[2])});
    }
    SymOp op = SymOp::number;
    if (const SymOpFacts* facts = find_by_sympy(name)) op = facts->op;
    if (name == "Mod") op = SymOp::mod;
    if (name == "CleanDiv") op = SymOp::floor_div;
    if (name == "IntTrueDiv") op = SymOp::true_div;
    if (name == "Pow" || name == "PowByNatural") op = SymOp::pow;
    if (name == "Eq") op = SymOp::eq;
    if (name == "Ne") op = SymOp::ne;
    if (op == SymOp::number || args.empty())
      fail(fmt::format("it has a function {}", quote_text(name)));
    // A truth value read from data is the test of an integer for 1.
    if (op == SymOp::eq && args[0].op == SymOp::symbol && args[0].kind == SymKind::boolean)
      return std::move(args[0]);
    return make_expr(op, std::move(args));
  }

  std::string_view text_;
  const ReadSymbol& read_symbol_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

SymExpr parse_sympy(std::string_view text, const ReadSymbol& read_symbol) {
  return Parser(text, read_symbol).all();
}

}  // namespace modelport::pt2
