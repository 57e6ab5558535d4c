// ONNX cells of tensors put together along an axis, or repeated.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values cat(Lower& l);
Values stack(Lower& l);
Values hstack(Lower& l);
Values vstack(Lower& l);
Values dstack(Lower& l);
Values column_stack(Lower& l);
Values block_diag(Lower& l);
Values meshgrid(Lower& l);
Values cartesian_prod(Lower& l);
Values pad_sequence(Lower& l);
Values repeat(Lower& l);
Values tile(Lower& l);
Values repeat_interleave(Lower& l);
Values repeat_interleave_counts(Lower& l);
Values repeat_interleave_tensor(Lower& l);

}  // namespace modelport::ops::onnx
