// ExecuTorch cells of elements and rows that differ from those before them.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

/// One of each run of equal elements, or of equal rows along `dim`.
Values unique_consecutive(Lower& l);
/// One of each element, in order.
Values unique(Lower& l);

}  // namespace modelport::ops::executorch
