// Operator schemas as torch prints them, parsed without torch: "(Tensor self, *, Scalar alpha=1) ->
// Tensor".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/table/op.h"

namespace modelport::ops {

struct Parameter {
  std::string type;  // "Tensor", "SymInt[]", "ScalarType?", alias annotations removed
  std::string name;
  std::string alias = {};  // "a" of "Tensor(a)" and "Tensor(a -> *)"
  bool keyword_only = false;
  bool has_default = false;
  ir::Arg default_value;  // None where there is none
};

struct Schema {
  std::vector<Parameter> parameters;
  std::vector<std::string> returns;         // "Tensor", "Tensor[]", "Scalar"
  std::vector<std::string> return_aliases;  // one for each: "a" of "Tensor(a)"
  const Parameter* find(std::string_view name) const;
  /// The operand that results may share memory with; nullptr for an operator that gives new
  /// tensors.
  const Parameter* viewed() const;
};

/// Throws InternalError: schemas are ours.
Schema parse_schema(std::string_view text);
/// Parsed once per row and kept.
const Schema& schema_of(const OpDef& op);

}  // namespace modelport::ops
