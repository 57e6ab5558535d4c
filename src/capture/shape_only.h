// Results of operators whose data is not computed: sizes from the operator's rule, strides as torch
// would lay them out.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "capture/op_facts.h"

namespace modelport::capture {

/// Whether the strides of this operator's result are known without running it on meta tensors,
/// which is slow: torch's meta kernels are mostly Python.
bool has_known_layout(const OpFacts& facts, const std::vector<c10::IValue>& operands);
/// The result of such an operator, on meta.
at::Tensor shape_only_result(const OpFacts& facts, const std::vector<c10::IValue>& operands,
                             const std::vector<std::int64_t>& sizes, c10::ScalarType dtype);
/// A tensor on meta of another type with the layout that a conversion gives.
at::Tensor shape_only_cast(const at::Tensor& from, c10::ScalarType dtype);

}  // namespace modelport::capture
