// XNNPACK cells of reductions, norms, convolutions and pooling. Convolutions and pooling have the
// channels last.
#pragma once

#include "ops/xnnpack/lower.h"

namespace modelport::ops::xnnpack {

Values mean(Lower& l);
Values sum(Lower& l);
Values softmax(Lower& l);

Values batch_norm(Lower& l);
Values layer_norm(Lower& l);
Values rms_norm(Lower& l);

Values adaptive_avg_pool2d(Lower& l);
Values avg_pool2d(Lower& l);
Values convolution(Lower& l);  // over one or two axes
Values max_pool2d(Lower& l);
Values upsample_bilinear2d(Lower& l);

}  // namespace modelport::ops::xnnpack
