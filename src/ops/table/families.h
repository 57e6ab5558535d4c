// The families of operators, one function each; `table.cc` joins them. A family proves its rows at
// compile time:
//   constexpr std::array kLinearOps{OpDef{...}, ...};
//   static_assert(first_bad_row(kLinearOps).empty(), "unsorted, duplicate or half-filled row");
#pragma once

#include <span>
#include <string_view>

#include "ops/table/op.h"

namespace modelport::ops {

/// The name of the first row that is unsorted, double or half filled; empty if there is none.
consteval std::string_view first_bad_row(std::span<const OpDef> rows) {
  std::string_view before;
  for (const OpDef& op : rows) {
    const bool filled = op.infer != nullptr && op.schema.starts_with('(') && !op.samples.empty() &&
                        is_filled(op.onnx);
    if (op.name <= before || !filled) return op.name.empty() ? "a row without a name" : op.name;
    before = op.name;
  }
  return {};
}

std::span<const OpDef> special_ops();
std::span<const OpDef> unary_ops();       // pointwise, one operand
std::span<const OpDef> binary_ops();      // pointwise, two operands
std::span<const OpDef> ternary_ops();     // pointwise, three operands
std::span<const OpDef> activation_ops();  // pointwise, from neural networks; dropout
std::span<const OpDef> compare_ops();
std::span<const OpDef> bitwise_ops();
std::span<const OpDef> reduce_ops();
std::span<const OpDef> statistics_ops();  // reductions that measure a sample
std::span<const OpDef> scan_ops();
std::span<const OpDef> loss_ops();
std::span<const OpDef> create_ops();
std::span<const OpDef> create_like_ops();
std::span<const OpDef> random_ops();
std::span<const OpDef> random_like_ops();
std::span<const OpDef> scalar_ops();  // numbers read out of tensors
std::span<const OpDef> cast_ops();

std::span<const OpDef> shape_ops();
std::span<const OpDef> indexing_ops();
std::span<const OpDef> linear_ops();
std::span<const OpDef> neural_ops();
std::span<const OpDef> spectral_ops();

}  // namespace modelport::ops
