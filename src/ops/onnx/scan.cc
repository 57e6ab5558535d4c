// ONNX has running sums. The other scans are reductions of a triangle: row i of a new axis holds
// the elements up to i, which takes the square of the axis in memory.
#include "ops/onnx/scan.h"

#include "base/not_finite.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/reduce.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

/// [..., n, ...] -> [..., n, n, ...]: element [i, j] is x[j], or `rest` where j comes after i.
Value triangle(Lower& l, Value x, std::int64_t axis, Value rest) {
  const Int& size = l.shape(x)[at(axis)];
  const Value places = l.range(size);
  Value before = l.compare("LessOrEqual", l.unsqueeze(places, {0}), l.unsqueeze(places, {1}));
  std::vector<std::int64_t> behind;
  for (std::int64_t i = axis + 1; i < l.rank(x); ++i) behind.push_back(2 + i - axis - 1);
  before = l.unsqueeze(before, behind);
  return l.where(before, l.unsqueeze(x, {axis}), rest);
}

Values running_extreme(Lower& l, bool largest) {
  const Value self = l.in("self");
  if (l.rank(self) == 0) return {self, l.number(std::int64_t{0}, Dtype::i64)};
  const std::int64_t axis = l.axis("dim", l.rank(self));
  const Value x = l.cast(self, working_dtype(l.dtype(self)));
  const Value rest = largest ? least(l, l.dtype(x)) : greatest(l, l.dtype(x));
  // Of equal ones torch takes the last.
  const Value found = position_of(l, triangle(l, x, axis, rest),
                                  {.axis = axis + 1, .largest = largest, .last = true});
  // Where all so far are as extreme as `rest` is, it was found behind them.
  std::vector<std::int64_t> behind;
  for (std::int64_t i = axis + 1; i < l.rank(x); ++i) behind.push_back(i - axis);
  const Value here = l.unsqueeze(l.range(l.shape(x)[at(axis)]), behind);
  const Value position = l.binary("Min", drop_axis(l, found, axis + 1, false), here);
  return {gather_elements(l, self, position, axis), position};
}

}  // namespace

Values cummax(Lower& l) { return running_extreme(l, true); }
Values cummin(Lower& l) { return running_extreme(l, false); }

Values cumprod(Lower& l) {
  if (is_complex(l.result().dtype)) l.refuse("no rule for complex numbers");
  const Value x = l.in("self", working_dtype(l.result().dtype));
  if (l.rank(x) == 0) return done(l, x);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  return done(l, l.reduce("ReduceProd", triangle(l, x, axis, like(l, x, 1)), {axis + 1}, false));
}

Values cumsum(Lower& l) {
  const Value x = l.in("self", working_dtype(l.result().dtype));
  if (l.rank(x) == 0) return done(l, x);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  if (is_complex(l.dtype(x))) return {l.from_pairs(running_sum(l, l.as_pairs(x), axis))};
  return done(l, running_sum(l, x, axis));
}

Values cumulative_trapezoid(Lower& l) {
  const Value y = l.in("y", working_dtype(l.result().dtype));
  const std::int64_t axis = l.axis("dim", l.rank(y));
  const Int& size = l.shape(y)[at(axis)];
  const Value sums =
      running_sum(l, l.add(l.slice(y, axis, 1, size), l.slice(y, axis, 0, size - 1)), axis);
  return done(l, l.mul(sums, like(l, y, l.real_number("dx") / 2)));
}

Values logcumsumexp(Lower& l) {
  if (is_complex(l.result().dtype)) l.refuse("no rule for complex numbers");
  const Value x = l.in("self", working_dtype(l.result().dtype));
  if (l.rank(x) == 0) return done(l, x);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Value rows = triangle(l, x, axis, like(l, x, -kInfinity));
  return done(l, l.reduce("ReduceLogSumExp", rows, {axis + 1}, false));
}

}  // namespace modelport::ops::onnx
