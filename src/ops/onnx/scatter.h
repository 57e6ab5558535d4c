// ONNX cells of elements written along an axis by position, or by mask.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values scatter_src(Lower& l);
Values scatter_value(Lower& l);
Values scatter_reduce(Lower& l);
Values index_add(Lower& l);
Values index_copy(Lower& l);
Values index_fill(Lower& l);
Values index_reduce(Lower& l);
Values put(Lower& l);
Values masked_fill(Lower& l);
Values masked_scatter(Lower& l);

}  // namespace modelport::ops::onnx
