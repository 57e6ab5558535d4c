// Reads the text form from left to right: words, names, numbers, the extent of expressions. Errors
// name line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace modelport::ir {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::size_t position() const { return at_; }
  void go_back_to(std::size_t position) { at_ = position; }
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }

  void skip_blanks();  // stays on the line
  void skip_lines();   // blanks, ends of line and comments
  /// If a comment is next on the line, its text; moves to the end of the line.
  std::string_view comment();
  /// Whether a statement may end here: end of line, end of text, '#' or '}'.
  bool at_end_of_statement();

  /// Moves past the word or sign if it is next.
  bool take(char sign);
  bool take_word(std::string_view word);
  void expect(char sign, std::string_view why);
  void expect_word(std::string_view word);

  std::string_view identifier_or_nothing();
  /// A symbol as expressions write it, without its backquotes.
  std::string_view symbol_or_nothing();
  std::string name(std::string_view what);        // bare or quoted
  std::string identifier(std::string_view what);  // bare or quoted
  std::string quoted();
  std::int64_t integer();
  /// Up to the next ',', ')', ']', '{', '}', '#' outside brackets or the end of the line, without
  /// blanks around it.
  std::string_view expression();

  [[noreturn]] void fail(std::string_view what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(std::size_t position, std::string_view what) const;

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Text as part of a message: quoted, and cut when it is long.
std::string excerpt(std::string_view text);

}  // namespace modelport::ir
