// ONNX cells of attention and of products in groups.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values attention(Lower& l);
Values attention_for_cpu(Lower& l);
Values grouped_mm(Lower& l);

}  // namespace modelport::ops::onnx
