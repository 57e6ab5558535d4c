// Escapes and numbers of JSON.
#include "backends/pt2/json_text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace modelport::pt2 {
namespace {

/// The length of the UTF-8 sequence at `at`; 0 if there is none.
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const std::size_t length = lead < 0x80         ? 1
                             : (lead >> 5) == 6  ? 2
                             : (lead >> 4) == 14 ? 3
                             : (lead >> 3) == 30 ? 4
                                                 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = length > 1 ? byte(at + 1) : 0;
  const bool overlong = (length == 2 && lead < 0xc2) || (lead == 0xe0 && second < 0xa0) ||
                        (lead == 0xf0 && second < 0x90);
  const bool beyond =
      (lead == 0xed && second >= 0xa0) || lead > 0xf4 || (lead == 0xf4 && second >= 0x90);
  return overlong || beyond ? 0 : length;
}

void append_control(std::string& out, unsigned char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      out += "\\u00";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
  }
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i++];
    } else if (c < 0x20) {
      append_control(out, c);
      ++i;
    } else if (const std::size_t length = sequence_length(text, i); length > 0) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\xef\xbf\xbd";
      ++i;
    }
  }
  out += '"';
}

void append_integer(std::string& out, std::int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

void append_float(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "\"NaN\"";
    return;
  }
  if (std::isinf(number)) {
    out += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
    return;
  }
  std::array<char, 40> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace modelport::pt2
