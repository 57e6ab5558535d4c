// ONNX cells of convolutions.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// Numbers for an attribute of ONNX, which cannot be computed when the program runs.
std::vector<std::int64_t> fixed(Lower& l, const std::vector<Int>& numbers);
/// The type that onnxruntime convolves and pools in.
Dtype window_dtype(Dtype dtype);

Values convolution(Lower& l);  // all of aten's but conv_tbc
Values conv_tbc(Lower& l);
Values causal_convolution(Lower& l);  // onnxruntime's own

}  // namespace modelport::ops::onnx
