// ONNX cells of distances and other sums over pairs of vectors, and the norms they are made of.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// (|x|^p summed)^(1/p), for infinite p the greatest, for 0 how many are not zero. Complex numbers
/// count by their magnitude.
Value vector_norm(Lower& l, Value x, double p, const std::vector<std::int64_t>& axes, bool keepdim);

Values cdist(Lower& l);
Values pdist(Lower& l);
Values cosine_similarity(Lower& l);
Values pairwise_distance(Lower& l);
Values cross(Lower& l);
Values vecdot(Lower& l);

}  // namespace modelport::ops::onnx
