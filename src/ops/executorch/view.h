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

}  // namespace modelport::ops::executorch
