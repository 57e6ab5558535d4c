// One scan that keeps count of brackets and quotes.
#include "ops/table/split.h"

namespace modelport::ops {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::size_t find_outside(std::string_view text, std::string_view wanted) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (depth == 0 && text.substr(i).starts_with(wanted)) return i;
    if (c == '"' || c == '\'') quote = c;
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_outside(std::string_view text, std::string_view mark) {
  std::vector<std::string_view> parts;
  text = trim(text);
  while (!text.empty()) {
    const std::size_t end = find_outside(text, mark);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    text = trim(text.substr(end + mark.size()));
  }
  return parts;
}

}  // namespace modelport::ops
