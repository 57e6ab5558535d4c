// One operator, one row: its schema, the rule for the type of its results, what it does beside
// computing, what each target makes of it, and calls that the parity tests are made from.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/table/cell.h"
#include "ops/table/traits.h"

namespace modelport::ops {

class Call;
using Results = std::vector<ir::Type>;
using Infer = Results (*)(Call& call);

struct OpDef {
  std::string_view name;    // "aten.addmm", "aten.add.Tensor"
  std::string_view schema;  // as torch prints it, from the opening bracket on
  Infer infer = nullptr;
  Handling handling = Handling::record;
  Recording recording = Recording::plain;
  PutBack put_back = {};
  Layout layout = Layout::unknown;  // layout_of() knows what a whole family has
  bool may_give_back = false;       // the operand itself, though the schema does not say so
  bool commutes = false;            // `self` and `other` may change places
  OnnxCell onnx = {};
  ExecutorchCell executorch = {};  // where nothing is said: executorch::kernel_of()
  XnnpackCell xnnpack = {};        // where nothing is said: ExecuTorch's
  /// Instead, for complex numbers, where the target's operators know none: on pairs of reals.
  Decompose pairs = {};
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
/// How the result of a row lies in memory: what the row says, or its family.
Layout layout_of(const OpDef& op);
/// Whether results of the operator may share memory with its first operand. By the schema of its
/// row; an overload without a row is taken to be as the others of its name.
bool may_share_memory(std::string_view name);
/// Whether the operator gives its operand's elements the shape that its second argument says.
bool takes_shape(std::string_view name);
/// How the recorder handles an operator by its own name, in-place ones too; it decides on
/// Handling::decompose itself.
Handling handling_of(std::string_view name);
/// The functional form of an in-place operator where it has another name; else empty.
std::string_view functional_name(std::string_view name);
/// "aten.add_.Tensor" writes to its first operand.
bool writes_in_place(std::string_view name);
/// "add" of "aten.add.Tensor".
std::string_view base_name(std::string_view name);

}  // namespace modelport::ops
