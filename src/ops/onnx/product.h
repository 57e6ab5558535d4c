// ONNX cells of products of matrices and vectors.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// MatMul on any type, complex numbers too. The result has the type of `a`.
Value product(Lower& l, Value a, Value b);
/// Elementwise, on any type.
Value times(Lower& l, Value a, Value b);
/// ReduceSum on any type.
Value sum_over(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim = false);
/// The conjugate; real numbers stay as they are.
Value conjugate(Lower& l, Value x);

Values linear(Lower& l);
Values matmul(Lower& l);  // self and other, mat2 or vec
Values int_mm(Lower& l);
Values added_product(Lower& l);  // addmm, baddbmm, addbmm, addmv, addr
Values dot(Lower& l);
Values outer(Lower& l);
Values inner(Lower& l);
Values kron(Lower& l);
Values tensordot(Lower& l);
Values bilinear(Lower& l);
Values chain(Lower& l);
Values einsum(Lower& l);  // einsum.cc

}  // namespace modelport::ops::onnx
