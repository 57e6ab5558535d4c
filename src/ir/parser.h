// The parser of the text form: statements in parse.cc, types and arguments in parse_values.cc.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ir/scanner.h"

namespace modelport::ir {

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Graph graph();
  TensorType lone_tensor_type();

 private:
  void inputs();
  void where();
  void dim(std::string name);
  shape::Range range();
  void weights();
  void statement();
  std::vector<std::string> results();
  void node(std::vector<std::string> results, std::string op, std::size_t start);
  void assume();
  void returns();
  void mutate();

  Type type();
  /// A lone name is a number read from data.
  shape::Real real(std::string_view text, std::size_t start);
  shape::Bool truth(std::string_view text, std::size_t start);
  TensorType tensor_type(std::string_view dtype_word, std::size_t start);
  ValueId value();
  Arg arg(int depth);
  Arg list(int depth);
  Arg word_or_expression();
  PlaceId place_of_statement();

  /// Lets the expression parser of the shape room read `text`, which stands at `start`.
  template <class Parse>
  auto expression(std::string_view text, std::size_t start, Parse&& parse) {
    try {
      return parse(text);
    } catch (const ExportError& error) {
      in_.fail_at(start, error.diagnostics().empty() ? error.what() : error.diagnostics()[0].what);
    }
  }

  Scanner in_;
  Graph graph_;
  /// Results of nodes: numbers, or names in text that people write.
  std::unordered_map<std::string, ValueId> locals_;
  bool returned_ = false;
};

}  // namespace modelport::ir
