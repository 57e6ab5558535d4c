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
  bool keyword_only = false;
  bool has_default = false;
  ir::Arg default_value;  // None where there is none
};

struct Schema {
  std::vector<Parameter> parameters;
  std::vector<std::string> returns;  // "Tensor", "Tensor[]", "Scalar"
  const Parameter* find(std::string_view name) const;
};

/// Throws InternalError: schemas are ours.
Schema parse_schema(std::string_view text);
/// Parsed once per row and kept.
const Schema& schema_of(const OpDef& op);

}  // namespace modelport::ops
