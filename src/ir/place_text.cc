// Places as comments of the text form: "modeling_qwen3.py:391 in Qwen3Model.forward,
// model.layers.0".
#include <algorithm>

#include "ir/lexical.h"

namespace modelport::ir {

namespace {

/// What stands bare in a place; everything else is quoted.
constexpr bool is_word_char(char c) {
  return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '/' || c == '<' || c == '>';
}

void append_word(std::string& out, std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_word_char)) {
    out += word;
  } else {
    append_quoted(out, word);
  }
}

std::optional<std::string> read_word(std::string_view text, std::size_t& at) {
  if (at < text.size() && text[at] == '"') return read_quoted(text, at);
  const std::size_t from = at;
  while (at < text.size() && is_word_char(text[at])) ++at;
  if (at == from) return std::nullopt;
  return std::string(text.substr(from, at - from));
}

/// Moves past `expected` if it stands at `at`.
bool skip(std::string_view text, std::size_t& at, std::string_view expected) {
  if (!text.substr(at).starts_with(expected)) return false;
  at += expected.size();
  return true;
}

/// The ":391" behind the file.
std::optional<int> read_line(std::string_view text, std::size_t& at) {
  if (!skip(text, at, ":")) return std::nullopt;
  const std::size_t from = at;
  if (at < text.size() && text[at] == '-') ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  const std::optional<std::int64_t> line = read_integer(text.substr(from, at - from));
  if (!line || *line > INT32_MAX || *line < INT32_MIN) return std::nullopt;
  return static_cast<int>(*line);
}

}  // namespace

void append_place(std::string& out, const Place& place) {
  if (place.where == SourceLine{}) {
    if (place.module_path.empty()) return;
    out += "module ";
    append_word(out, place.module_path);
    return;
  }
  append_word(out, place.where.file);
  out += ':';
  append_number(out, std::int64_t{place.where.line});
  if (!place.where.function.empty()) {
    out += " in ";
    append_word(out, place.where.function);
  }
  if (!place.module_path.empty()) {
    out += ", ";
    append_word(out, place.module_path);
  }
}

std::optional<Place> read_place(std::string_view comment) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!comment.empty() && is_space(comment.front())) comment.remove_prefix(1);
  while (!comment.empty() && is_space(comment.back())) comment.remove_suffix(1);
  Place place;
  std::size_t at = 0;
  const auto read_into = [&](std::string& part) {
    std::optional<std::string> word = read_word(comment, at);
    if (word) part = std::move(*word);
    return word.has_value();
  };
  if (skip(comment, at, "module ")) {
    if (!read_into(place.module_path) || at != comment.size()) return std::nullopt;
    return place;
  }
  if (!read_into(place.where.file)) return std::nullopt;
  const std::optional<int> line = read_line(comment, at);
  if (!line) return std::nullopt;
  place.where.line = *line;
  if (skip(comment, at, " in ") && !read_into(place.where.function)) return std::nullopt;
  if (skip(comment, at, ", ") && !read_into(place.module_path)) return std::nullopt;
  if (at != comment.size()) return std::nullopt;
  return place;
}

}  // namespace modelport::ir
