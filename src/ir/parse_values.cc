// Types, values and arguments of the text form.
#include "ir/lexical.h"
#include "ir/parser.h"
#include "ir/text.h"

namespace modelport::ir {

namespace {

/// Deeper lists than any operator takes; hostile text must not exhaust the stack.
constexpr int kDeepestList = 32;

}  // namespace

Type Parser::type() {
  const std::size_t start = in_.position();
  const std::string_view word = in_.identifier_or_nothing();
  if (in_.peek() == '[') return tensor_type(word, start);
  in_.skip_blanks();
  const std::size_t symbol_start = in_.position();
  const std::string_view text = in_.expression();
  if (word == "int") return ScalarType{expression(text, symbol_start, shape::parse_int)};
  if (word == "float") return ScalarType{real(text, symbol_start)};
  if (word == "bool") return ScalarType{truth(text, symbol_start)};
  in_.fail_at(start, "expected a type such as f32[2, seq] or int u0");
}

shape::Real Parser::real(std::string_view text, std::size_t start) {
  return expression(text, start, [](std::string_view it) {
    return is_lone_symbol(it) ? shape::parse_real("real(" + std::string(it) + ")")
                              : shape::parse_real(it);
  });
}

shape::Bool Parser::truth(std::string_view text, std::size_t start) {
  return expression(text, start, [](std::string_view it) {
    return is_lone_symbol(it) ? shape::parse_bool("bool(" + std::string(it) + ")")
                              : shape::parse_bool(it);
  });
}

TensorType Parser::tensor_type(std::string_view dtype_word, std::size_t start) {
  const std::optional<Dtype> dtype = parse_dtype(dtype_word);
  if (!dtype) in_.fail_at(start, "expected an element type such as f32, i64 or bool");
  TensorType type{*dtype, {}};
  in_.expect('[', "and the sizes after the element type");
  in_.skip_blanks();
  if (in_.take(']')) return type;
  do {
    in_.skip_blanks();
    const std::size_t size_start = in_.position();
    const std::string_view text = in_.expression();
    const std::optional<std::int64_t> number = read_integer(text);
    type.shape.push_back(number ? shape::Int(*number)
                                : expression(text, size_start, shape::parse_int));
    in_.skip_blanks();
  } while (in_.take(','));
  in_.expect(']', "after the sizes");
  return type;
}

TensorType Parser::lone_tensor_type() {
  in_.skip_lines();
  const std::size_t start = in_.position();
  TensorType type = tensor_type(in_.identifier_or_nothing(), start);
  in_.skip_lines();
  if (!in_.at_end()) in_.fail("expected nothing more after the type");
  return type;
}

ValueId Parser::value() {
  const std::size_t start = in_.position();
  if (in_.take('@')) {
    const ValueId* id = graph_.find_weight(in_.name("a weight's name"));
    if (id == nullptr) in_.fail_at(start, "a weight that the graph does not list");
    return *id;
  }
  in_.expect('%', "or '@' before a value's name");
  const bool is_quoted = in_.peek() == '"';
  const std::string name = in_.name("a value's name");
  // %1 is the result of a node, %"1" an input.
  if (!is_quoted) {
    if (const auto local = locals_.find(name); local != locals_.end()) return local->second;
  }
  const ValueId* id = is_quoted || !is_number(name) ? graph_.find_input(name) : nullptr;
  if (id == nullptr) in_.fail_at(start, "a value that is not defined above");
  return *id;
}

Arg Parser::arg(int depth) {
  switch (in_.peek()) {
    case '%':
    case '@':
      return {value()};
    case '"':
      return {in_.quoted()};
    case '[':
      return list(depth);
    default:
      return word_or_expression();
  }
}

Arg Parser::list(int depth) {
  if (depth == kDeepestList) in_.fail("lists nested too deeply");
  in_.expect('[', "of a list");
  ArgList items;
  in_.skip_blanks();
  if (in_.take(']')) return {std::move(items)};
  do {
    in_.skip_lines();
    items.push_back(arg(depth + 1));
    in_.skip_lines();
  } while (in_.take(','));
  in_.expect(']', "after the list");
  return {std::move(items)};
}

Arg Parser::word_or_expression() {
  const std::size_t start = in_.position();
  const std::string_view text = in_.expression();
  if (text.empty()) in_.fail("expected a value");
  if (text == "None") return {None{}};
  if (text == "true" || text == "false") return {text == "true"};
  if (const auto integer = read_integer(text)) return {shape::Int(*integer)};
  if (const auto number = read_double(text)) return {*number};
  if (const auto dtype = parse_dtype(text)) return {*dtype};
  const auto inside = [&](std::string_view wrapper) {
    return text.substr(wrapper.size(), text.size() - wrapper.size() - 1);
  };
  if (text.ends_with(')')) {
    if (text.starts_with("real(")) return {real(inside("real("), start + 5)};
    if (text.starts_with("bool(")) return {truth(inside("bool("), start + 5)};
    if (text.starts_with("int(")) {
      return {expression(inside("int("), start + 4, shape::parse_int)};
    }
  }
  return {expression(text, start, shape::parse_int)};
}

TensorType parse_tensor_type(std::string_view text) { return Parser(text).lone_tensor_type(); }

}  // namespace modelport::ir
