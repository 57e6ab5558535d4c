// ONNX cells of normalizations and softmax.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values softmax(Lower& l);
Values log_softmax(Lower& l);
Values safe_softmax(Lower& l);
Values layer_norm(Lower& l);  // alone, or with mean and reciprocal deviation
Values rms_norm(Lower& l);    // alone, or with the reciprocal root mean square
Values group_norm(Lower& l);  // alone, or with mean and reciprocal deviation
Values batch_norm(Lower& l);  // alone, or with what training keeps
Values instance_norm(Lower& l);
Values renorm(Lower& l);
Values weight_norm(Lower& l);

}  // namespace modelport::ops::onnx
