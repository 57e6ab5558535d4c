// ONNX cells of bitwise operators and shifts.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values bitwise_and(Lower& l);
Values bitwise_or(Lower& l);
Values bitwise_xor(Lower& l);
Values left_shift(Lower& l);
Values right_shift(Lower& l);

}  // namespace modelport::ops::onnx
