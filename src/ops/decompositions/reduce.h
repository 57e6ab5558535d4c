// Reductions, statistics and running results in terms of other operators.
#pragma once

#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {

Value all(Emitter& e);
Values aminmax(Emitter& e);
Value any(Emitter& e);
Values median(Emitter& e);
Value nansum(Emitter& e);
Value sum_all(Emitter& e);

Value count_nonzero(Emitter& e);
Value dist(Emitter& e);
Value histc(Emitter& e);
Value logsumexp(Emitter& e);
Value norm(Emitter& e);
Value quantile(Emitter& e);
Value std(Emitter& e);
Values std_mean(Emitter& e);
Value var(Emitter& e);
Values var_mean(Emitter& e);

Values cummax(Emitter& e);
Values cummin(Emitter& e);
Value cumprod(Emitter& e);
Value cumulative_trapezoid(Emitter& e);
Value linear_recurrence(Emitter& e);
Value logcumsumexp(Emitter& e);
Value maximum_recurrence(Emitter& e);

/// The norm of an order over axes.
struct Norm {
  double order = 2;
  std::vector<std::int64_t> axes;
  bool keepdim = false;
};
Value norm_along(Terms& t, Value x, const Norm& norm);

}  // namespace modelport::ops::parts
