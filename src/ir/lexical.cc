#include "ir/lexical.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

namespace modelport::ir {

namespace {

constexpr std::array<std::string_view, 7> kExpressionWords{"and",   "or",  "not", "true",
                                                           "false", "inf", "nan"};
constexpr std::array<std::string_view, 3> kStatements{"assume", "mutate", "return"};
constexpr std::string_view kHexDigits = "0123456789abcdef";

constexpr bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '/';
}

/// The length of the UTF-8 sequence at `at`, 0 if it is not a valid one.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies above U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

void append_hex(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}

std::optional<char> read_hex(std::string_view digits) {
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

std::size_t bare_name_length(std::string_view text) {
  if (text.empty() || (!is_letter(text[0]) && !is_digit(text[0]))) return 0;
  std::size_t end = 1;
  for (; end < text.size(); ++end) {
    if (is_name_char(text[end])) continue;
    // A colon that ends the name belongs to the type behind it.
    if (text[end] != ':' || end + 1 == text.size() || !is_name_char(text[end + 1])) break;
  }
  return end;
}

bool is_bare_name(std::string_view text) {
  return !text.empty() && bare_name_length(text) == text.size();
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
}

bool is_plain_symbol(std::string_view name) {
  const auto continues = [](char c) { return is_letter(c) || is_digit(c) || c == '.'; };
  return !name.empty() && is_letter(name[0]) && std::ranges::all_of(name, continues) &&
         std::ranges::find(kExpressionWords, name) == kExpressionWords.end();
}

bool is_lone_symbol(std::string_view text) {
  if (!text.starts_with('`')) return is_plain_symbol(text);
  return text.size() > 1 && text.find('`', 1) == text.size() - 1;
}

bool is_argument_word(std::string_view text) {
  return text == "None" || parse_dtype(text).has_value();
}

bool is_statement_word(std::string_view text) {
  return std::ranges::find(kStatements, text) != kStatements.end();
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = utf8_length(text, i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (length == 0 || (length == 1 && (c < ' ' || c == '\x7f'))) {
      append_hex(out, c);
    } else {
      out += text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  out += '"';
}

void append_name(std::string& out, std::string_view name) {
  if (is_bare_name(name)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

void append_identifier(std::string& out, std::string_view name) {
  if (is_identifier(name)) {
    out += name;
  } else {
    append_quoted(out, name);
  }
}

void append_symbol(std::string& out, std::string_view name) {
  const bool plain = is_plain_symbol(name);
  if (!plain) out += '`';
  out += name;
  if (!plain) out += '`';
}

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 24> buffer;
  out.append(buffer.data(),
             std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr);
}

void append_number(std::string& out, double number) {
  if (std::isnan(number)) {  // of either sign
    out += "nan";
    return;
  }
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  const std::string_view text(buffer.data(), end);
  out += text;
  if (text.find_first_not_of("-0123456789") == std::string_view::npos) out += ".0";
}

std::optional<std::string> read_quoted(std::string_view text, std::size_t& at) {
  if (at >= text.size() || text[at] != '"') return std::nullopt;
  std::string result;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      at = i + 1;
      return result;
    }
    if (c == '\n') return std::nullopt;
    if (c == '\\') {
      if (++i == text.size()) return std::nullopt;
      c = text[i];
      if (c == 'x') {
        const std::optional<char> byte = read_hex(text.substr(i + 1, 2));
        if (!byte) return std::nullopt;
        c = *byte;
        i += 2;
      } else if (c == 'n' || c == 't') {
        c = c == 'n' ? '\n' : '\t';
      } else if (c != '"' && c != '\\') {
        return std::nullopt;
      }
    }
    result += c;
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<double> read_double(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  // from_chars also takes "infinity", "nan(...)" and what looks like an integer.
  const bool has_digits = !digits.empty() && is_digit(digits[0]) && !is_number(digits);
  if (!has_digits && digits != "inf" && digits != "nan") return std::nullopt;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace modelport::ir
