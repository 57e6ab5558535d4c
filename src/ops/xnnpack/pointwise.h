// XNNPACK cells of pointwise rows that are no node of their own.
#pragma once

#include "ops/xnnpack/lower.h"

namespace modelport::ops::xnnpack {

// `alpha` times the other operand
Values add(Lower& l);
Values sub(Lower& l);
Values rsub(Lower& l);

// limits
Values clamp(Lower& l);  // min and max, each of which may be missing
Values relu(Lower& l);
Values relu6(Lower& l);
Values hardtanh(Lower& l);

Values elu(Lower& l);
Values gelu(Lower& l);
Values hardsigmoid(Lower& l);
Values leaky_relu(Lower& l);
Values power(Lower& l);
Values reciprocal(Lower& l);
Values silu(Lower& l);

}  // namespace modelport::ops::xnnpack
