// ONNX cells of running sums, products and extremes, and of recurrences.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values cummax(Lower& l);
Values cummin(Lower& l);
Values cumprod(Lower& l);
Values cumsum(Lower& l);
Values cumulative_trapezoid(Lower& l);
Values gated_delta_rule(Lower& l);
Values linear_recurrence(Lower& l);
Values logcumsumexp(Lower& l);
Values maximum_recurrence(Lower& l);

}  // namespace modelport::ops::onnx
