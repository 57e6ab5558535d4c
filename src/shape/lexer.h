// Tokens of the text form of expressions. Private to this room.
#pragma once

#include <cstddef>
#include <string_view>

namespace modelport::shape::detail {

struct Token {
  enum class Kind { end, integer, real, name, quoted, sign };
  Kind kind = Kind::end;
  std::string_view text;   // of quoted: without the quotes
  std::size_t column = 0;  // from 0
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  /// Throws ExportError with Code::bad_text and the column.
  [[noreturn]] void fail(std::size_t column, std::string_view what) const;

 private:
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool is_digit(std::size_t i) const { return at(i) >= '0' && at(i) <= '9'; }
  Token take(Token::Kind kind, std::size_t end);
  Token number();
  Token quoted();

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace modelport::shape::detail
