// ONNX cells of tensors made from sizes and numbers.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values arange(Lower& l);
Values eye(Lower& l);
Values zeros(Lower& l);  // also what is left uninitialized
Values ones(Lower& l);
Values full(Lower& l);  // fill_value, value or s
Values linspace(Lower& l);
Values logspace(Lower& l);
Values triangle_indices(Lower& l);
Values signal_window(Lower& l);

}  // namespace modelport::ops::onnx
