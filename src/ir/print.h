// The printer, piece by piece: what the whole text form and messages about one node have in common.
#pragma once

#include <string>

#include "ir/graph.h"
#include "ir/value_names.h"

namespace modelport::ir {

class Printer {
 public:
  Printer(const Graph& graph, const ValueNames& names, std::string& out)
      : graph_(graph), names_(names), out_(out) {}
  void graph();
  void node(const Node& node);  // without place and end of line
  void place(PlaceId id);       // as a comment behind a line

 private:
  void inputs();
  void where();
  void weights();
  void assumption(const Assumption& assumption);
  void returns();
  void append_arg(std::string& out, const Arg& arg) const;

  const Graph& graph_;
  const ValueNames& names_;
  std::string& out_;
};

}  // namespace modelport::ir
