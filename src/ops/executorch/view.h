// ExecuTorch cells of rows that move nothing, or less than their kernels would.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

/// The operand itself.
Values same(Lower& l);
/// The same memory in the shape of the result.
Values view(Lower& l);
Values expand(Lower& l);
Values permute(Lower& l);
/// Where the axes of the result come from, for the rows that move axes of `self`.
std::vector<std::int64_t> order_of_axes(Lower& l, std::int64_t rank);

}  // namespace modelport::ops::executorch
