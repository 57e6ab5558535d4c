// Reads symbolic numbers in Python's notation, with Python's precedences.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "backends/pt2/sym_expr.h"
#include "base/error.h"

namespace modelport::pt2 {
namespace {

// Bounds on hostile text: the trees are walked by recursion.
constexpr int kMaxDepth = 256;
constexpr int kMaxOperators = 2000;

struct Infix {
  std::string_view text;
  SymOp op;
};
// Longer ones first where one begins with another.
constexpr std::array kComparisons{Infix{"==", SymOp::eq}, Infix{"!=", SymOp::ne},
                                  Infix{"<=", SymOp::le}, Infix{">=", SymOp::ge},
                                  Infix{"<", SymOp::lt},  Infix{">", SymOp::gt}};
constexpr std::array kSums{Infix{"+", SymOp::add}, Infix{"-", SymOp::sub}};
constexpr std::array kProducts{Infix{"//", SymOp::floor_div}, Infix{"/", SymOp::true_div},
                               Infix{"%", SymOp::mod}, Infix{"*", SymOp::mul}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || is_digit(c);
}

class Parser {
 public:
  Parser(std::string_view text, const SymKinds& kinds) : text_(text), kinds_(kinds) {}

  SymExpr all() {
    SymExpr x = disjunction();
    skip();
    if (at_ != text_.size()) fail("something is left over");
    return x;
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw ExportError(Diagnostic{.code = Code::bad_text,
                                 .what = fmt::format("symbolic number \"{}\", column {}: {}",
                                                     text_.substr(0, 200), at_ + 1, why),
                                 .where = {},
                                 .module_path = {},
                                 .notes = {},
                                 .ways_out = {"write it as \"2*batch*seq + seq//2 - 1\""}});
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    const bool word = is_word(token.back());
    const std::size_t end = at_ + token.size();
    if (word && end < text_.size() && is_word(text_[end])) return false;
    if (token == "*" && text_.substr(at_).starts_with("**")) return false;
    at_ = end;
    return true;
  }

  template <class Operators>
  std::optional<SymOp> take_infix(const Operators& operators) {
    for (const Infix& infix : operators) {
      if (take(infix.text)) return infix.op;
    }
    return std::nullopt;
  }

  SymExpr disjunction() {
    if (++depth_ > kMaxDepth) fail("nested too deeply");
    SymExpr x = conjunction();
    while (take("or") || take("||")) x = pair(SymOp::logical_or, std::move(x), conjunction());
    --depth_;
    return x;
  }

  SymExpr conjunction() {
    SymExpr x = negation();
    while (take("and") || take("&&")) x = pair(SymOp::logical_and, std::move(x), negation());
    return x;
  }

  SymExpr negation() {
    if (take("not") || (!text_.substr(at_).starts_with("!=") && take("!"))) {
      if (++depth_ > kMaxDepth) fail("nested too deeply");
      SymExpr x = make_expr(SymOp::logical_not, {negation()});
      --depth_;
      return x;
    }
    SymExpr x = sum();
    if (const auto op = take_infix(kComparisons)) return pair(*op, std::move(x), sum());
    return x;
  }

  SymExpr sum() {
    std::vector<std::pair<SymOp, SymExpr>> terms;
    terms.emplace_back(SymOp::add, product());
    bool integers = terms[0].second.kind == SymKind::integer;
    while (const auto op = take_infix(kSums)) {
      terms.emplace_back(*op, product());
      integers = integers && terms.back().second.kind == SymKind::integer;
    }
    if (integers && terms.size() > kFewOperands) return long_sum(std::move(terms));
    SymExpr x = std::move(terms[0].second);
    for (std::size_t i = 1; i < terms.size(); ++i)
      x = pair(terms[i].first, std::move(x), std::move(terms[i].second));
    return x;
  }

  /// Sums of integers may be taken in any order.
  SymExpr long_sum(std::vector<std::pair<SymOp, SymExpr>> terms) {
    std::vector<SymExpr> added, taken_away;
    for (auto& [op, term] : terms)
      (op == SymOp::add ? added : taken_away).push_back(std::move(term));
    const auto add = [this](SymExpr a, SymExpr b) {
      return pair(SymOp::add, std::move(a), std::move(b));
    };
    SymExpr x = fold_in_halves(std::move(added), add);
    if (taken_away.empty()) return x;
    return pair(SymOp::sub, std::move(x), fold_in_halves(std::move(taken_away), add));
  }

  SymExpr product() {
    SymExpr x = signed_power();
    while (const auto op = take_infix(kProducts)) x = pair(*op, std::move(x), signed_power());
    return x;
  }

  SymExpr signed_power() {
    if (!take("-")) return power();
    if (++depth_ > kMaxDepth) fail("nested too deeply");
    SymExpr x = signed_power();
    --depth_;
    if (x.op != SymOp::number) return make_expr(SymOp::neg, {std::move(x)});
    if (x.kind == SymKind::real) return real_expr(-x.real);
    if (x.integer == std::numeric_limits<std::int64_t>::min()) fail("a number too large");
    return integer_expr(-x.integer);
  }

  SymExpr power() {
    SymExpr base = primary();
    if (!take("**")) return base;
    return pair(SymOp::pow, std::move(base), signed_power());
  }

  SymExpr pair(SymOp op, SymExpr a, SymExpr b) {
    if (++operators_ > kMaxOperators) fail("too long");
    std::vector<SymExpr> args;
    args.push_back(std::move(a));
    args.push_back(std::move(b));
    return make_expr(op, std::move(args));
  }

  SymExpr primary() {
    skip();
    if (take("(")) {
      SymExpr x = disjunction();
      if (!take(")")) fail("a closing bracket is missing");
      return x;
    }
    if (at_ >= text_.size()) fail("it ends too early");
    if (is_digit(text_[at_]) || text_[at_] == '.') return number();
    if (text_[at_] == '`') return symbol(name());
    const std::string_view word = name();
    if (take("(")) return call(word);
    if (word == "true" || word == "True") return boolean_expr(true);
    if (word == "false" || word == "False") return boolean_expr(false);
    if (word == "inf") return real_expr(std::numeric_limits<double>::infinity());
    if (word == "nan") return real_expr(std::numeric_limits<double>::quiet_NaN());
    return symbol(word);
  }

  SymExpr symbol(std::string_view word) const {
    const auto kind = kinds_.find(word);
    return symbol_expr(word, kind == kinds_.end() ? SymKind::integer : kind->second);
  }

  /// Names that would not read back otherwise stand in backquotes.
  std::string_view name() {
    skip();
    const bool in_quotes = at_ < text_.size() && text_[at_] == '`';
    const std::size_t begin = in_quotes ? ++at_ : at_;
    while (at_ < text_.size() && (in_quotes ? text_[at_] != '`' : is_word(text_[at_]))) ++at_;
    const std::string_view result = text_.substr(begin, at_ - begin);
    if (in_quotes && !take("`")) fail("a backquote is missing");
    if (result.empty()) fail("a number or a name belongs here");
    return result;
  }

  SymExpr call(std::string_view word) {
    if (word == "real" || word == "bool") {  // a symbol for what was read out of a tensor
      SymExpr x = symbol_expr(name(), word == "real" ? SymKind::real : SymKind::boolean);
      if (!take(")")) fail("a closing bracket is missing");
      return x;
    }
    const SymOpFacts* facts = find_by_text(word);
    if (facts == nullptr) fail(fmt::format("an unknown function {}", word));
    std::vector<SymExpr> args;
    do {
      args.push_back(disjunction());
    } while (take(","));
    if (!take(")")) fail("a closing bracket is missing");
    return make_expr(facts->op, std::move(args));
  }

  SymExpr number() {
    const char* begin = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    std::int64_t whole = 0;
    const auto [whole_end, whole_error] = std::from_chars(begin, end, whole);
    const bool fraction =
        whole_end != end && (*whole_end == '.' || *whole_end == 'e' || *whole_end == 'E');
    if (whole_error == std::errc() && !fraction) {
      at_ += static_cast<std::size_t>(whole_end - begin);
      return integer_expr(whole);
    }
    double real = 0;
    const auto [real_end, real_error] = std::from_chars(begin, end, real);
    if (real_error != std::errc()) fail("not a number");
    at_ += static_cast<std::size_t>(real_end - begin);
    return real_expr(real);
  }

  std::string_view text_;
  const SymKinds& kinds_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

SymExpr parse_sym(std::string_view text, const SymKinds& kinds) {
  return Parser(text, kinds).all();
}

}  // namespace modelport::pt2
