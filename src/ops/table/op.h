// One operator, one row: its schema, the rule for the type of its results, what each target makes
// of it, and calls that the parity tests are made from.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace modelport::ops {

class Call;
class Lower;
using Results = std::vector<ir::Type>;
using Infer = Results (*)(Call& call);

/// What ONNX makes of an operator.
struct OnnxCell {
  using Function = std::vector<ir::ValueId> (*)(Lower& lower);  // one value for each result
  Function lower = nullptr;
  std::string_view op;      // instead of a function: this operator, on the operands as they come
  std::string_view reason;  // instead of both: why there is no way
  constexpr bool filled() const { return lower != nullptr || !op.empty() || !reason.empty(); }
};
/// One operator of ONNX on the tensor operands in the order of the schema, all of the result's
/// type.
constexpr OnnxCell direct(std::string_view op) { return {.op = op}; }
constexpr OnnxCell custom(OnnxCell::Function function) { return {.lower = function}; }
constexpr OnnxCell refuse(std::string_view reason) { return {.reason = reason}; }

struct OpDef {
  std::string_view name;    // "aten.addmm", "aten.add.Tensor"
  std::string_view schema;  // as torch prints it, from the opening bracket on
  Infer infer = nullptr;
  OnnxCell onnx = {};
  /// Calls in text form, separated by ';': "f32[a, b], f32[b]; i64[a], 2". Integers are drawn from
  /// {0, 1} unless the dtype says otherwise: "i64<5>[a]" draws from 0..4. Symbols take several
  /// sizes in the tests. "name=value" after the positional ones. Lists: [1, -1], [f32[a], f32[b]].
  /// Nothing: None.
  std::string_view samples;
};

/// nullptr for an operator without a row.
const OpDef* find_op(std::string_view name);
/// Every row, sorted by name.
std::span<const OpDef* const> all_ops();

}  // namespace modelport::ops
