// What types, arguments and conditions mention: symbols for sizes, and floats and bools read from
// data.
#pragma once

#include <set>
#include <string>

#include "ir/graph.h"

namespace modelport::ir {

using Symbols = std::set<std::string, std::less<>>;

struct Mentions {
  Symbols sizes;  // integers
  Symbols data;   // floats and bools, which no dim declares
};

void collect(const Type& type, Mentions& into);
void collect(const Arg& arg, Mentions& into);
void collect(const shape::Bool& condition, Mentions& into);

}  // namespace modelport::ir
