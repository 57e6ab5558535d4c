#include <utility>

#include "ir/lexical.h"
#include "ir/parser.h"
#include "ir/text.h"

namespace modelport::ir {

Graph Parser::graph() {
  in_.skip_lines();
  in_.expect_word("graph");
  in_.skip_blanks();
  graph_.name = in_.name("the graph's name");
  in_.skip_blanks();
  in_.expect('(', "before the inputs");
  inputs();
  in_.skip_lines();
  if (in_.take_word("where")) where();
  in_.skip_lines();
  if (in_.take_word("weights")) weights();
  in_.skip_lines();
  in_.expect('{', "before the nodes");
  for (in_.skip_lines(); !in_.take('}'); in_.skip_lines()) {
    if (in_.at_end()) in_.fail("expected '}' after the last statement");
    statement();
  }
  in_.skip_lines();
  if (!in_.at_end()) in_.fail("expected nothing more after the graph");
  return std::move(graph_);
}

void Parser::inputs() {
  in_.skip_lines();
  if (in_.take(')')) return;
  do {
    in_.skip_lines();
    const std::size_t start = in_.position();
    in_.expect('%', "before an input's name");
    const bool is_quoted = in_.peek() == '"';
    std::string name = in_.name("an input's name");
    if (!is_quoted && is_number(name)) in_.fail_at(start, "an input called by a number: quote it");
    if (graph_.find_input(name) != nullptr) {
      in_.fail_at(start, "a second input called " + excerpt(name));
    }
    in_.skip_blanks();
    in_.expect(':', "and a type after the input's name");
    in_.skip_blanks();
    graph_.add_input(std::move(name), type());
    in_.skip_lines();
  } while (in_.take(','));
  in_.expect(')', "after the inputs");
}

void Parser::where() {
  bool more = true;
  while (more) {
    in_.skip_lines();
    const std::size_t start = in_.position();
    std::string name(in_.symbol_or_nothing());
    in_.skip_blanks();
    const bool is_dim = in_.take_word("in");
    if (is_dim) {
      dim(std::move(name));
    } else {
      in_.go_back_to(start);
      const std::string_view text = in_.expression();
      graph_.guards.push_back({.condition = expression(text, start, shape::parse_bool),
                               .effect = shape::Guard::Effect::kept,
                               .where = {},
                               .module_path = {}});
    }
    in_.skip_blanks();
    more = in_.take(',');
    const std::optional<Place> place = read_place(in_.comment());
    if (!is_dim && place) {
      graph_.guards.back().where = place->where;
      graph_.guards.back().module_path = place->module_path;
    }
  }
}

void Parser::dim(std::string name) {
  in_.skip_blanks();
  shape::Dim dim{
      .name = std::move(name), .range = range(), .declared = {}, .hint = 0, .from_data = false};
  in_.skip_blanks();
  if (in_.take('=')) {
    in_.skip_blanks();
    dim.hint = in_.integer();
    in_.skip_blanks();
  }
  if (in_.take_word("from")) {
    in_.skip_blanks();
    in_.expect_word("data");
    dim.from_data = true;
    in_.skip_blanks();
  }
  dim.declared = dim.range;
  if (in_.take_word("declared")) {
    in_.skip_blanks();
    dim.declared = range();
  }
  graph_.dims.push_back(std::move(dim));
}

shape::Range Parser::range() {
  const auto is_integer = [&] { return in_.peek() == '-' || is_digit(in_.peek()); };
  shape::Range range;
  if (is_integer()) range.lo = in_.integer();
  in_.expect('.', "of a range such as 1.. or 2..64");
  in_.expect('.', "of a range such as 1.. or 2..64");
  if (is_integer()) range.hi = in_.integer();
  return range;
}

void Parser::weights() {
  do {
    in_.skip_lines();
    const std::size_t start = in_.position();
    in_.expect('@', "before a weight's name");
    std::string name = in_.name("a weight's name");
    if (graph_.find_weight(name) != nullptr) {
      in_.fail_at(start, "a second weight called " + excerpt(name));
    }
    in_.skip_blanks();
    in_.expect(':', "and a type after the weight's name");
    in_.skip_blanks();
    const std::size_t type_start = in_.position();
    TensorType of = tensor_type(in_.identifier_or_nothing(), type_start);
    in_.skip_blanks();
    WeightKind kind = WeightKind::parameter;
    if (in_.take_word("buffer")) {
      kind = WeightKind::buffer;
    } else if (in_.take_word("buffer_not_saved")) {
      kind = WeightKind::buffer_not_saved;
    } else if (in_.take_word("constant")) {
      kind = WeightKind::constant;
    }
    graph_.add_weight(std::move(name), std::move(of), kind);
    in_.skip_lines();
  } while (in_.take(','));
}

void Parser::statement() {
  const std::size_t start = in_.position();
  std::vector<std::string> names = results();
  const bool is_quoted = in_.peek() == '"';
  std::string word = in_.name("an operator's name, assume, return or mutate");
  if (is_quoted || !names.empty() || !is_statement_word(word)) {
    node(std::move(names), std::move(word), start);
  } else if (word == "assume") {
    assume();
  } else if (word == "return") {
    returns();
  } else {
    mutate();
  }
  in_.comment();
  if (!in_.at_end_of_statement()) in_.fail("expected the end of the line");
}

std::vector<std::string> Parser::results() {
  std::vector<std::string> names;
  if (in_.peek() != '%') return names;
  do {
    in_.skip_blanks();
    const std::size_t start = in_.position();
    in_.expect('%', "before a result's name");
    if (in_.peek() == '"') in_.fail("expected a result's number or name without quotes");
    names.push_back(in_.name("a result's number or name"));
    if (!is_number(names.back()) && graph_.find_input(names.back()) != nullptr) {
      in_.fail_at(start, "a result called like an input");
    }
    in_.skip_blanks();
  } while (in_.take(','));
  in_.expect('=', "after the results");
  in_.skip_blanks();
  return names;
}

void Parser::node(std::vector<std::string> results, std::string op, std::size_t start) {
  in_.skip_blanks();
  in_.expect('(', "before the operator's arguments");
  std::vector<NamedArg> args;
  in_.skip_lines();
  if (!in_.take(')')) {
    do {
      in_.skip_lines();
      std::string name = in_.identifier("an argument's name");
      in_.skip_blanks();
      in_.expect('=', "after the argument's name");
      in_.skip_blanks();
      args.push_back({std::move(name), arg(0)});
      in_.skip_lines();
    } while (in_.take(','));
    in_.expect(')', "after the operator's arguments");
  }
  in_.skip_blanks();
  std::vector<Type> types;
  if (!results.empty()) {
    in_.expect(':', "and the types of the results");
    do {
      in_.skip_lines();
      types.push_back(type());
      in_.skip_blanks();
    } while (in_.take(','));
  }
  if (types.size() != results.size()) in_.fail_at(start, "not one type for each result");
  const PlaceId place = place_of_statement();
  const NodeId id = graph_.add_node(std::move(op), std::move(args), std::move(types), place);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!locals_.try_emplace(std::move(results[i]), graph_.node(id).results[i]).second) {
      in_.fail_at(start, "a result that was defined before");
    }
  }
}

void Parser::assume() {
  in_.skip_blanks();
  Assumption assumption{.value = value(), .expected = false, .place = {}};
  in_.skip_blanks();
  in_.expect('=', "of a comparison with ==");
  in_.expect('=', "of a comparison with ==");
  in_.skip_blanks();
  const std::size_t start = in_.position();
  const std::string_view text = in_.expression();
  if (text == "true" || text == "false") {
    assumption.expected = text == "true";
  } else if (const auto integer = read_integer(text)) {
    assumption.expected = *integer;
  } else if (const auto number = read_double(text)) {
    assumption.expected = *number;
  } else {
    in_.fail_at(start, "expected true, false or a number");
  }
  assumption.place = place_of_statement();
  graph_.assumptions.push_back(assumption);
}

void Parser::returns() {
  if (std::exchange(returned_, true)) in_.fail("a second return");
  if (in_.at_end_of_statement()) return;
  do {
    in_.skip_lines();
    std::string name = in_.name("an output's name");
    in_.skip_blanks();
    in_.expect('=', "after the output's name");
    in_.skip_blanks();
    graph_.outputs.push_back({std::move(name), arg(0)});
    in_.skip_blanks();
  } while (in_.take(','));
}

void Parser::mutate() {
  in_.skip_blanks();
  const ValueId buffer = value();
  in_.skip_blanks();
  in_.expect('=', "after the buffer");
  in_.skip_blanks();
  graph_.mutations.push_back({buffer, value()});
}

PlaceId Parser::place_of_statement() {
  const std::optional<Place> place = read_place(in_.comment());
  return place ? graph_.add_place(place->where, place->module_path) : PlaceId{};
}

Graph parse_graph(std::string_view text) { return Parser(text).graph(); }

}  // namespace modelport::ir
