// ONNX cells of sorting, and of searching in what is sorted.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values sort(Lower& l);
Values argsort(Lower& l);
Values msort(Lower& l);
Values topk(Lower& l);
Values kthvalue(Lower& l);
Values bucketize(Lower& l);
Values searchsorted(Lower& l);
Values isin(Lower& l);

}  // namespace modelport::ops::onnx
