// Which names the text form writes as they are, and which in backquotes. Private to this room.
#pragma once

#include <string>
#include <string_view>

namespace modelport::shape::detail {

inline bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '.'; }

inline bool is_reserved(std::string_view name) {
  for (const std::string_view word : {"and", "or", "not", "true", "false", "inf", "nan"}) {
    if (name == word) return true;
  }
  return false;
}

inline std::string print_name(std::string_view name) {
  bool plain = !name.empty() && starts_name(name[0]) && !is_reserved(name);
  for (const char c : name) plain = plain && continues_name(c);
  return plain ? std::string(name) : '`' + std::string(name) + '`';
}

}  // namespace modelport::shape::detail
