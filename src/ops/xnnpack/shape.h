// XNNPACK cells of rows that move, cut and join.
#pragma once

#include "ops/xnnpack/lower.h"

namespace modelport::ops::xnnpack {

/// Joined along the axis, five at a time at most.
Value joined(Lower& l, Values parts, std::int64_t axis);

Values cat(Lower& l);
Values expand(Lower& l);
Values pad(Lower& l);
Values permute(Lower& l);
Values reshape(Lower& l);
Values select(Lower& l);
Values slice(Lower& l);
/// Rows that give pieces of `self` along `dim`, one after the other.
Values split(Lower& l);

}  // namespace modelport::ops::xnnpack
