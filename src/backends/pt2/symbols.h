// The symbols of a program under the names torch knows kinds of symbols by (s0: a size, u0: an
// integer from data, zuf0: a float from data), with the hints that torch's loader computes with.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/pt2/sym_expr.h"
#include "ir/graph.h"

namespace modelport::pt2 {

struct TorchSymbol {
  std::string name;  // "s0"
  SymKind kind = SymKind::integer;
  bool from_data = false;
  shape::Range range;
};

class Symbols {
 public:
  explicit Symbols(const ir::Graph& graph);

  const SymKinds& kinds() const { return kinds_; }
  const TorchSymbol& at(std::string_view name) const;
  /// The size of the example that torch is told of; 0 for what the data decides.
  std::int64_t hint_of(const std::string& name) const;
  /// Whether anything written so far mentions the symbol.
  bool occurs(const std::string& name) const { return introduced_.contains(name); }
  /// {name in the graph, symbol}, in the order of the graph's dims, then of the nodes.
  const std::vector<std::pair<std::string, TorchSymbol>>& all() const { return symbols_; }

  /// The JSON of a size: {"as_int": 4} or {"as_expr": {"expr_str": ..., "hint": ...}}.
  const std::string& size_json(const shape::Int& x);
  std::string value_json(const SymExpr& x);

 private:
  struct Hash {
    std::size_t operator()(const shape::Int& x) const { return x.hash(); }
  };
  void add(std::string_view name, SymKind kind, const shape::Dim* dim);
  void choose_hints(const ir::Graph& graph);
  std::string expression_json(const SymExpr& x, const std::string& hint);
  void append_symbol(std::string& out, const std::string& name);
  /// Whether torch may be told a value: not for what depends on data.
  bool has_hint(const SymExpr& x) const;

  std::vector<std::pair<std::string, TorchSymbol>> symbols_;
  std::map<std::string, std::size_t, std::less<>> index_;
  SymKinds kinds_;
  shape::Values hints_;
  int sizes_ = 0;
  int data_ints_ = 0;
  int data_reals_ = 0;
  std::unordered_set<std::string> introduced_;  // by the expressions written so far
  std::vector<std::string> introducing_;        // by the one being written
  std::unordered_map<shape::Int, std::string, Hash> sizes_json_;
  std::string first_json_;  // of a size that introduces a symbol, so is not kept
};

}  // namespace modelport::pt2
