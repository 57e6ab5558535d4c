// The words of the text form, as the printer writes them and the scanner reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace modelport::ir {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Letters, digits, '_', '.', '-', '/', and ':' between two of these, from a letter or a digit on.
/// Gives the length of the name that `text` starts with; 0 if it starts with none.
std::size_t bare_name_length(std::string_view text);
bool is_bare_name(std::string_view text);
bool is_number(std::string_view text);      // digits only
bool is_identifier(std::string_view text);  // as in Python, ASCII only
/// Whether expressions write a symbol of this name as it is; others stand in backquotes.
bool is_plain_symbol(std::string_view name);
/// Whether the text is one symbol, plain or in backquotes, and nothing else.
bool is_lone_symbol(std::string_view text);
/// Plain symbols that mean something else as an argument: None, f32, ...
bool is_argument_word(std::string_view text);
/// Words that begin a statement, so that no operator can be called so without quotes.
bool is_statement_word(std::string_view text);

void append_quoted(std::string& out, std::string_view text);
/// Bare where that is possible.
void append_name(std::string& out, std::string_view name);
/// An identifier bare, anything else quoted.
void append_identifier(std::string& out, std::string_view name);
void append_symbol(std::string& out, std::string_view name);
void append_number(std::string& out, std::int64_t number);
/// The shortest form that reads back as the same number, never that of an integer: 2.0, 1e-05, inf,
/// nan.
void append_number(std::string& out, double number);

/// Reads a quoted string at `at` and moves past it; nothing if it is not well formed.
std::optional<std::string> read_quoted(std::string_view text, std::size_t& at);
std::optional<std::int64_t> read_integer(std::string_view text);  // all of the text
std::optional<double> read_double(std::string_view text);         // all of the text

/// Equal as the text form sees it: bit by bit, any NaN like any other.
bool same_number(double a, double b);

/// "modeling_qwen3.py:391 in Qwen3Model.forward, model.embed_tokens"; nothing for an unknown place.
void append_place(std::string& out, const Place& place);
/// Nothing if the comment is not a place but a note.
std::optional<Place> read_place(std::string_view comment);

}  // namespace modelport::ir
