// Nodes that compute symbolic numbers when the program runs: sizes of tensors, and arithmetic on
// them. Each distinct number is computed once, before its first use.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "backends/pt2/graph_text.h"
#include "backends/pt2/symbols.h"
#include "ops/emit/size_sources.h"

namespace modelport::pt2 {

/// A number that an argument can take: plain, or the name of the node that computes it.
struct SymOperand {
  SymExpr value;     // what it is
  std::string name;  // empty for a plain number

  /// {"as_int": 4}, {"as_sym_int": {"as_name": "mul"}}, ...
  void append_argument(std::string& out) const;
  /// As an item of a list of symbolic numbers: {"as_int": 4}, {"as_name": "mul"}.
  void append_item(std::string& out) const;
};

class SymNodes {
 public:
  SymNodes(GraphText& graph, Symbols& symbols) : graph_(graph), symbols_(symbols) {}

  /// From here on the sizes of this tensor can be read.
  void learn_sizes(const std::string& tensor, const std::vector<shape::Int>& shape);
  /// From here on the number that stands for the symbol is called `name`.
  void learn_number(const SymExpr& symbol, const std::string& name);
  /// Whether every symbol of the expression can be read by now.
  bool knows(const SymExpr& x) const;

  SymOperand operand(const shape::Int& x);
  SymOperand operand(const SymExpr& x);
  /// The size itself, whatever expression it is known by.
  SymOperand read_size(const std::string& tensor, std::int64_t axis, const SymExpr& value);
  /// Stops the program with the message where the condition does not hold.
  void require(const SymExpr& condition, const std::string& message);
  /// The same for a size that is computed from symbols; torch itself tests the others.
  void require_size(const std::string& tensor, std::int64_t axis, const shape::Int& size,
                    const std::string& message);

 private:
  using Sources = ops::emit::SizeSources<std::string>;
  struct Hash {
    std::size_t operator()(const shape::Int& x) const { return x.hash(); }
  };
  SymOperand symbol(const SymExpr& x);
  SymOperand solve(const SymExpr& symbol, const Sources::Source& source);
  SymOperand fold(const SymExpr& x);
  SymOperand rounded(const SymExpr& x);
  SymOperand through_tensor(const SymExpr& x);
  void stop_unless(const SymOperand& truth, const std::string& message);
  SymOperand call(std::string_view target, const SymExpr& value,
                  const std::vector<SymOperand>& args);

  GraphText& graph_;
  Symbols& symbols_;
  Sources sources_;
  std::unordered_map<std::string, SymOperand> known_;                // by key of the tree
  std::unordered_map<shape::Int, SymOperand, Hash> known_integers_;  // the same, found faster
  std::unordered_set<std::string> solving_;
  bool holds_ = false;  // while a condition is written that is known to hold for admissible inputs
};

}  // namespace modelport::pt2
