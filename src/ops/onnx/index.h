// ONNX cells of elements picked by index or mask, and of copies with such elements replaced.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values index(Lower& l);
Values index_put(Lower& l);

Values embedding(Lower& l);
Values embedding_bag(Lower& l);  // bag.cc
Values gather(Lower& l);
Values index_select(Lower& l);
Values take(Lower& l);
Values take_along_dim(Lower& l);

}  // namespace modelport::ops::onnx
