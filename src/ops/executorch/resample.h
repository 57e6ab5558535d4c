// ExecuTorch cells of interpolation.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

Values upsample_with_antialias(Lower& l);

}  // namespace modelport::ops::executorch
