// ONNX cells of comparisons and logical operators.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values compare_eq(Lower& l);
Values compare_ne(Lower& l);
Values compare_lt(Lower& l);
Values compare_le(Lower& l);
Values compare_gt(Lower& l);
Values compare_ge(Lower& l);
Values isclose(Lower& l);
Values allclose(Lower& l);
Values equal(Lower& l);
Values is_nonzero(Lower& l);
Values logical_and(Lower& l);
Values logical_or(Lower& l);
Values logical_xor(Lower& l);

}  // namespace modelport::ops::onnx
