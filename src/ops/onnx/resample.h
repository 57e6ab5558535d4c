// ONNX cells of interpolation, and of sampling at the points of a grid.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// A matrix [out, in] times x along one axis of x, whose size is `in`.
Value times_along(Lower& l, Value matrix, Value x, std::int64_t axis);

Values upsample(Lower& l);
Values affine_grid(Lower& l);   // grid.cc
Values grid_sampler(Lower& l);  // grid.cc

}  // namespace modelport::ops::onnx
