// ExecuTorch cells of indexing whose results have sizes that the data decides.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

Values index(Lower& l);
Values index_put(Lower& l);
/// A column of places for each axis.
Values nonzero_columns(Lower& l);
Values repeat_interleave_by_tensor(Lower& l);

}  // namespace modelport::ops::executorch
