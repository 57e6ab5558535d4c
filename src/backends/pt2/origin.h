// What a graph says and torch's schema has no place for: names of dimensions, inputs and outputs,
// guards, assumptions. It travels as one text in the program's metadata, which torch keeps but does
// not read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace modelport::pt2 {

struct Origin {
  struct Assumption {
    std::string value;  // its name in the program
    std::variant<bool, std::int64_t, double> expected;
    ir::Place place;
  };
  std::string graph;
  std::vector<std::string> inputs;   // dotted paths, one a leaf
  std::vector<std::string> outputs;  // the same
  std::vector<std::string> weights;  // in the order of the graph; a program has them by kind
  std::vector<std::pair<std::string, std::string>> symbols;  // {in the program, in the graph}
  std::vector<shape::Dim> dims;
  std::vector<shape::Guard> guards;
  std::vector<Assumption> assumptions;
};

std::string print(const Origin& origin);
/// Throws ExportError (Code::bad_file).
Origin parse_origin(std::string_view text);

}  // namespace modelport::pt2
