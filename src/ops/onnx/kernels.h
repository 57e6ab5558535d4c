// Which element types onnxruntime's CPU provider computes an operator of ONNX in.
#pragma once

#include <string_view>

#include "base/dtype.h"

namespace modelport::ops::onnx {

/// The type to compute in: `dtype` itself, or the nearest one that there is a kernel for. Results
/// are cast back.
Dtype kernel_dtype(std::string_view op, Dtype dtype);

}  // namespace modelport::ops::onnx
