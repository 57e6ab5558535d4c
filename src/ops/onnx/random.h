// ONNX cells of random tensors.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values rand(Lower& l);     // uniform: rand, rand_like
Values randn(Lower& l);    // normal: randn, randn_like
Values randint(Lower& l);  // with and without a low end
Values randperm(Lower& l);
Values multinomial(Lower& l);
Values normal(Lower& l);  // mean and std as numbers or tensors
Values bernoulli(Lower& l);
Values cauchy(Lower& l);
Values exponential(Lower& l);
Values geometric(Lower& l);
Values log_normal(Lower& l);
Values random_integers(Lower& l);
Values uniform(Lower& l);

/// Of the shape of x, false with probability p.
Value random_mask(Lower& l, Value x, double p);
/// From [0, 1).
Value random_uniform(Lower& l, const Shape& shape, Dtype dtype);
Value random_normal(Lower& l, const Shape& shape, Dtype dtype);

}  // namespace modelport::ops::onnx
