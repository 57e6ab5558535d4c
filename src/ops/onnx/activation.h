// ONNX cells of activations and dropout.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values celu(Lower& l);
Values dropout(Lower& l);
Values alpha_dropout(Lower& l);
Values feature_dropout(Lower& l);
Values native_dropout(Lower& l);
Values elu(Lower& l);
Values gelu(Lower& l);
Values glu(Lower& l);
Values hardshrink(Lower& l);
Values hardsigmoid(Lower& l);
Values hardswish(Lower& l);
Values hardtanh(Lower& l);
Values leaky_relu(Lower& l);
Values log_sigmoid(Lower& l);
Values log_sigmoid_forward(Lower& l);
Values mish(Lower& l);
Values prelu(Lower& l);
Values relu(Lower& l);
Values relu6(Lower& l);
Values rrelu(Lower& l);
Values selu(Lower& l);
Values silu(Lower& l);
Values softplus(Lower& l);
Values softshrink(Lower& l);
Values threshold(Lower& l);

/// log(1 + exp(x)) without overflow.
Value softplus_of(Lower& l, Value x);

}  // namespace modelport::ops::onnx
