#include "ir/scanner.h"

#include <algorithm>

#include "ir/lexical.h"

namespace modelport::ir {

namespace {

constexpr std::size_t kLongestExcerpt = 60;

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

std::string excerpt(std::string_view text) {
  std::string result;
  append_quoted(result, text.substr(0, kLongestExcerpt));
  if (text.size() > kLongestExcerpt) result += "...";
  return result;
}

void Scanner::skip_blanks() {
  while (!at_end() && is_blank(text_[at_])) ++at_;
}

void Scanner::skip_lines() {
  while (true) {
    skip_blanks();
    if (peek() == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (peek() == '\n') {
      ++at_;
    } else {
      return;
    }
  }
}

std::string_view Scanner::comment() {
  skip_blanks();
  if (peek() != '#') return {};
  const std::size_t from = at_ + 1;
  at_ = std::min(text_.find('\n', at_), text_.size());
  return text_.substr(from, at_ - from);
}

bool Scanner::at_end_of_statement() {
  skip_blanks();
  return at_end() || peek() == '\n' || peek() == '#' || peek() == '}';
}

bool Scanner::take(char sign) {
  if (at_end() || text_[at_] != sign) return false;
  ++at_;
  return true;
}

bool Scanner::take_word(std::string_view word) {
  const std::size_t from = at_;
  if (identifier_or_nothing() == word) return true;
  at_ = from;
  return false;
}

void Scanner::expect(char sign, std::string_view why) {
  if (!take(sign)) fail("expected '" + std::string(1, sign) + "' " + std::string(why));
}

void Scanner::expect_word(std::string_view word) {
  if (!take_word(word)) fail("expected the word " + std::string(word));
}

std::string_view Scanner::identifier_or_nothing() {
  if (at_end() || !is_letter(text_[at_])) return {};
  const std::size_t from = at_;
  while (!at_end() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  return text_.substr(from, at_ - from);
}

std::string_view Scanner::symbol_or_nothing() {
  const std::size_t from = at_;
  if (take('`')) {
    const std::size_t end = text_.substr(0, text_.find('\n', from)).find('`', at_);
    at_ = end == std::string_view::npos ? from : end + 1;
    if (at_ == from) return {};
    return text_.substr(from + 1, end - from - 1);
  }
  if (!is_letter(peek())) return {};
  while (is_letter(peek()) || is_digit(peek()) || peek() == '.') ++at_;
  return text_.substr(from, at_ - from);
}

std::string Scanner::name(std::string_view what) {
  if (peek() == '"') return quoted();
  const std::size_t length = bare_name_length(text_.substr(at_));
  if (length == 0) fail("expected " + std::string(what));
  at_ += length;
  return std::string(text_.substr(at_ - length, length));
}

std::string Scanner::identifier(std::string_view what) {
  if (peek() == '"') return quoted();
  const std::string_view word = identifier_or_nothing();
  if (word.empty()) fail("expected " + std::string(what));
  return std::string(word);
}

std::string Scanner::quoted() {
  std::optional<std::string> text = read_quoted(text_, at_);
  if (!text)
    fail(
        "a string that does not end on its line, or has an escape other than \\\" \\\\ \\n \\t "
        "\\x00");
  return std::move(*text);
}

std::int64_t Scanner::integer() {
  const std::size_t from = at_;
  take('-');
  while (is_digit(peek())) ++at_;
  const std::string_view digits = text_.substr(from, at_ - from);
  const std::optional<std::int64_t> number = read_integer(digits);
  if (!number) {
    fail_at(from, digits.empty() ? "expected an integer" : "expected an integer of 64 bits");
  }
  return *number;
}

std::string_view Scanner::expression() {
  const std::size_t from = at_;
  std::size_t depth = 0;
  for (; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == '\n' || c == '#' || c == '{' || c == '}') break;
    if (c == '`') {
      if (symbol_or_nothing().empty()) break;
      --at_;
      continue;
    }
    if (c == '(' || c == '[') ++depth;
    if (depth == 0 && (c == ',' || c == ')' || c == ']')) break;
    if (c == ')' || c == ']') --depth;
  }
  std::string_view found = text_.substr(from, at_ - from);
  while (!found.empty() && is_blank(found.back())) found.remove_suffix(1);
  return found;
}

void Scanner::fail_at(std::size_t position, std::string_view what) const {
  const std::string_view before = text_.substr(0, position);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::size_t line_end = std::min(text_.find('\n', position), text_.size());
  const auto line = 1 + std::ranges::count(before, '\n');
  throw ExportError(Diagnostic{
      .code = Code::bad_text,
      .what = "line " + std::to_string(line) + ", column " +
              std::to_string(position - line_start + 1) + ": " + std::string(what),
      .where = {},
      .module_path = {},
      .notes = {"the line is " + excerpt(text_.substr(line_start, line_end - line_start))},
      .ways_out = {}});
}

}  // namespace modelport::ir
