#include "shape/lexer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "shape/names.h"

namespace modelport::shape::detail {

void Lexer::fail(std::size_t column, std::string_view what) const {
  // Text that is no expression may be any bytes; what is shown of it must be printable.
  std::string shown(text_.substr(0, 200));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  }
  throw ExportError(
      Diagnostic{.code = Code::bad_text,
                 .what = fmt::format("column {} of '{}': {}", column + 1, shown, what)});
}

Token Lexer::take(Token::Kind kind, std::size_t end) {
  const Token token{kind, text_.substr(position_, end - position_), position_};
  position_ = end;
  return token;
}

Token Lexer::next() {
  while (at(position_) == ' ') ++position_;
  if (position_ >= text_.size()) return take(Token::Kind::end, text_.size());
  if (is_digit(position_)) return number();
  if (at(position_) == '`') return quoted();
  if (starts_name(at(position_))) {
    std::size_t end = position_;
    while (continues_name(at(end))) ++end;
    return take(Token::Kind::name, end);
  }
  const std::string_view two = text_.substr(position_, 2);
  for (const std::string_view sign : {"//", "**", "==", "!=", "<=", ">="}) {
    if (two == sign) return take(Token::Kind::sign, position_ + 2);
  }
  return take(Token::Kind::sign, position_ + 1);
}

Token Lexer::number() {
  Token::Kind kind = Token::Kind::integer;
  std::size_t end = position_;
  while (is_digit(end)) ++end;
  if (at(end) == '.') {
    kind = Token::Kind::real;
    ++end;
    while (is_digit(end)) ++end;
  }
  if (at(end) == 'e' || at(end) == 'E') {
    kind = Token::Kind::real;
    ++end;
    if (at(end) == '+' || at(end) == '-') ++end;
    if (!is_digit(end)) fail(position_, "a number without its exponent");
    while (is_digit(end)) ++end;
  }
  if (continues_name(at(end))) fail(end, "a number runs into a name");
  return take(kind, end);
}

Token Lexer::quoted() {
  const std::size_t end = text_.find('`', position_ + 1);
  if (end == std::string_view::npos) fail(position_, "a quoted name without its end");
  const Token token{Token::Kind::quoted, text_.substr(position_ + 1, end - position_ - 1),
                    position_};
  position_ = end + 1;
  return token;
}

}  // namespace modelport::shape::detail
