// Reads patterns of operators.
#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "ops/fusions/pattern.h"

namespace modelport::ops::fusions {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Pattern whole() {
    Pattern pattern = term();
    if (!rest().empty() || pattern.kind != Pattern::Kind::call) fail("an operator");
    return pattern;
  }

 private:
  Pattern term() {
    if (take("{")) return choices();
    if (take("[")) return list();
    if (take("_")) return {};
    const bool through_slices = take("~");
    std::string word = identifier();
    Pattern pattern;
    if (take("@")) {
      pattern.name = std::move(word);
      word = identifier();
    }
    if (take("(")) {
      pattern.kind = Pattern::Kind::call;
      pattern.op = std::move(word);
      pattern.through_slices = through_slices;
      arguments(pattern);
      return pattern;
    }
    if (through_slices || !pattern.name.empty()) fail("an operator");
    return plain(word);
  }

  Pattern plain(const std::string& word) {
    if (word.empty()) fail("a name, a number or an operator");
    Pattern pattern;
    pattern.kind = Pattern::Kind::literal;
    std::int64_t number = 0;
    if (word == "True" || word == "False") {
      pattern.literal = {word == "True"};
    } else if (std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc()) {
      pattern.literal = {shape::Int(number)};
    } else {
      pattern.kind = Pattern::Kind::name;
      pattern.name = word;
    }
    return pattern;
  }

  Pattern choices() {
    Pattern pattern;
    pattern.kind = Pattern::Kind::one_of;
    do {
      pattern.parts.push_back(term());
    } while (take("|"));
    if (!take("}")) fail("}");
    return pattern;
  }

  Pattern list() {
    Pattern pattern;
    pattern.kind = Pattern::Kind::list;
    do {
      pattern.parts.push_back(term());
    } while (take(","));
    if (!take("]")) fail("]");
    return pattern;
  }

  void arguments(Pattern& pattern) {
    do {
      if (take("...")) {
        pattern.rest_is_free = true;
        break;
      }
      pattern.argument_names.push_back(identifier());
      if (!take("=")) fail("=");
      pattern.parts.push_back(term());
    } while (take(","));
    if (!take(")")) fail(")");
  }

  std::string identifier() {
    const std::string_view text = rest();
    std::size_t end = 0;
    const auto belongs = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    };
    while (end < text.size() && belongs(text[end])) ++end;
    at_ += end;
    return std::string(text.substr(0, end));
  }

  bool take(std::string_view mark) {
    if (!rest().starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }
  std::string_view rest() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return text_.substr(at_);
  }
  [[noreturn]] void fail(std::string_view wanted) {
    throw InternalError(fmt::format("pattern {}: {} is wanted at {}", text_, wanted, rest()));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Pattern parse_pattern(std::string_view text) { return Parser(text).whole(); }

}  // namespace modelport::ops::fusions
