// ONNX cells of pools.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values max_pool(Lower& l);  // alone, or with indices
Values avg_pool(Lower& l);
Values adaptive_avg_pool(Lower& l);
Values adaptive_max_pool(Lower& l);
Values max_unpool(Lower& l);

}  // namespace modelport::ops::onnx
