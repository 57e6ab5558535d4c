// ExecuTorch cells of indexing: results with sizes that the data decides, rows of quantized
// weights.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

Values embedding(Lower& l);
Values index(Lower& l);
Values index_put(Lower& l);
/// A column of places for each axis.
Values nonzero_columns(Lower& l);
Values repeat_interleave_by_tensor(Lower& l);

}  // namespace modelport::ops::executorch
