// ExecuTorch cells of kernels that take less than their row: operands are brought into shape first.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

/// Kernels that want a result of the right size before they run.
Values grid_sampler_2d(Lower& l);
Values upsample_bilinear2d_aa(Lower& l);

/// Pads that are not negative.
Values constant_pad_nd(Lower& l);
/// A matrix of weights, and more than one vector.
Values linear(Lower& l);
/// A mask of the size of the tensor.
Values masked_select(Lower& l);
/// Weights of the type of the operand.
Values native_group_norm(Lower& l);
Values native_layer_norm(Lower& l);
/// Axes for the shifts.
Values roll(Lower& l);
/// At least one axis.
Values unfold(Lower& l);

}  // namespace modelport::ops::executorch
