// Patterns of operators in text form, and where a graph has them.
//
//   aten.mul.Tensor(self=x, other=aten.rsqrt(self=y))
//
// A name stands for an argument, the same one wherever it occurs; `name@op(...)` names a result.
// Arguments that are not mentioned have their default, unless `...` ends the list; `_` is any.
// `{a | b}` is one of several. `~op(...)` may be seen through slices that take all of an axis.
// `[a, b]` is a list. Operands of an operator that commutes may have changed places.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace modelport::ops::fusions {

struct Pattern {
  enum class Kind { any, name, literal, call, list, one_of };
  Kind kind = Kind::any;
  std::string name;  // of an argument, of a call's result (may be empty)
  ir::Arg literal;
  std::string op;
  bool through_slices = false;
  bool rest_is_free = false;
  std::vector<std::string> argument_names;
  std::vector<Pattern> parts;  // one for each argument name, the items, or the choices
};

/// Throws InternalError: patterns are ours.
Pattern parse_pattern(std::string_view text);

/// What a pattern's names stand for in a graph.
class Found {
 public:
  Found(const ir::Graph& graph, const std::vector<int>& uses) : graph_(graph), uses_(uses) {}

  const ir::Graph& graph() const { return graph_; }
  bool has(std::string_view name) const { return names_.contains(name); }
  const ir::Arg& arg(std::string_view name) const { return names_.find(name)->second; }
  bool is_value(std::string_view name) const { return arg(name).get<ir::ValueId>() != nullptr; }
  ir::ValueId value(std::string_view name) const { return *arg(name).get<ir::ValueId>(); }
  const ir::TensorType& type(std::string_view name) const {
    return graph_.value(value(name)).tensor();
  }
  /// How often a value was used before anything was fused.
  int uses(std::string_view name) const { return uses_[value(name).index]; }
  /// A plain number.
  std::optional<double> number(std::string_view name) const;
  /// A list of plain integers; empty where it is no such list.
  std::vector<std::int64_t> integers(std::string_view name) const;

 private:
  friend class Matcher;
  const ir::Graph& graph_;
  const std::vector<int>& uses_;
  std::map<std::string, ir::Arg, std::less<>> names_;
};

/// The names of the pattern where the node is an instance of it. `uses` counts each value's uses.
std::optional<Found> find(const Pattern& pattern, const ir::Graph& graph, const ir::Node& node,
                          const std::vector<int>& uses);
/// For patterns that do not ask for them.
inline const std::vector<int> kUsesNotAsked;

}  // namespace modelport::ops::fusions
