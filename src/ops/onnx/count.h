// ONNX cells of results whose number of elements, or whose value, the data decides.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values nonzero(Lower& l);
Values nonzero_lists(Lower& l);
Values nonzero_static(Lower& l);
Values masked_select(Lower& l);
Values unique(Lower& l);
Values unique_along(Lower& l);
Values unique_consecutive(Lower& l);
Values one_hot(Lower& l);
Values item(Lower& l);

}  // namespace modelport::ops::onnx
