// ONNX cells of norms, spreads, quantiles and counts.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values bincount(Lower& l);
Values count_nonzero(Lower& l);
Values dist(Lower& l);
Values histc(Lower& l);
Values logsumexp(Lower& l);
Values norm(Lower& l);  // its order is `ord` or `p`
Values quantile(Lower& l);
Values std_cell(Lower& l);
Values std_mean(Lower& l);
Values var(Lower& l);
Values var_mean(Lower& l);

/// The norm of some order along axes.
struct Norm {
  double order = 2;
  std::vector<std::int64_t> axes;
  bool keepdim = false;
};
Value norm_along(Lower& l, Value x, const Norm& norm);

}  // namespace modelport::ops::onnx
