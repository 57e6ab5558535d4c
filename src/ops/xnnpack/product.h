// XNNPACK cells of products of matrices, and of attention.
#pragma once

#include "ops/xnnpack/lower.h"

namespace modelport::ops::xnnpack {

Values addmm(Lower& l);
Values attention(Lower& l);
Values linear(Lower& l);
Values matmul(Lower& l);  // any two ranks from two on

}  // namespace modelport::ops::xnnpack
