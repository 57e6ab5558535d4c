// Distances by differences of all pairs: no cancellation, as the expanded square would have.
#include "ops/onnx/distance.h"

#include <cmath>

#include "ops/onnx/complex.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/product.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

Value vector_norm(Lower& l, Value x, double p, const std::vector<std::int64_t>& axes,
                  bool keepdim) {
  if (is_complex(l.dtype(x))) x = complex_magnitude(l, x);
  if (axes.empty()) return l.unary("Abs", x);
  if (p == 2) return l.reduce("ReduceL2", x, axes, keepdim);
  if (p == 1) return l.reduce("ReduceL1", x, axes, keepdim);
  if (p == 0) {
    const Value zero = l.compare("Equal", x, l.number(0.0, l.dtype(x)));
    return l.reduce("ReduceSum", l.cast(l.logical_not(zero), l.dtype(x)), axes, keepdim);
  }
  const Value size = l.unary("Abs", x);
  if (std::isinf(p)) return l.reduce(p > 0 ? "ReduceMax" : "ReduceMin", size, axes, keepdim);
  const Value powers = l.binary("Pow", size, l.number(p, l.dtype(x)));
  return l.binary("Pow", l.reduce("ReduceSum", powers, axes, keepdim), l.number(1 / p, l.dtype(x)));
}

Values cdist(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value a = l.in("x1", own);
  const Value b = l.in("x2", own);
  const double p = l.call().op().name == "aten._euclidean_dist" ? 2 : l.real_number("p");
  const Value apart = l.sub(l.unsqueeze(a, {l.rank(a) - 1}), l.unsqueeze(b, {l.rank(b) - 2}));
  return {vector_norm(l, apart, p, {l.rank(apart) - 1}, false)};
}

Values pdist(Lower& l) {
  const Value x = l.in("self");
  const Int rows = l.shape(x)[0];
  const Value row = l.range(rows);
  const Value before = l.compare("Less", l.unsqueeze(row, {1}), row);
  const Value pairs = places(l, before, l.result().shape[0]);
  const auto side = [&](std::int64_t which) {
    return l.gather(x, l.gather(pairs, l.number(which, Dtype::i64), 0), 0);
  };
  return {vector_norm(l, l.sub(side(0), side(1)), l.real_number("p"), {1}, false)};
}

Values cosine_similarity(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value a = l.in("x1", wide);
  const Value b = l.in("x2", wide);
  const Value least = l.number(l.real_number("eps"), wide);
  const auto rank = static_cast<std::int64_t>(l.result().shape.size()) + 1;
  const std::int64_t axis = axis_of(l.call(), "dim", rank);
  const auto lifted = [&](Value x) {
    std::vector<std::int64_t> front;
    for (std::int64_t i = 0; i < rank - l.rank(x); ++i) front.push_back(i);
    return l.unsqueeze(x, front);
  };
  // An axis that only one side has in full is full on both.
  const Value x = lifted(a);
  const Value y = lifted(b);
  const auto at = static_cast<std::size_t>(axis);
  const Int full = l.shape(x)[at] == Int(1) ? l.shape(y)[at] : l.shape(x)[at];
  const auto unit = [&](Value v) {
    const Value whole = l.expand(v, with_size(l.shape(v), axis, full));
    return l.div(whole, l.binary("Max", vector_norm(l, whole, 2, {axis}, true), least));
  };
  return {l.cast(sum_over(l, l.mul(unit(x), unit(y)), {axis}), own)};
}

Values pairwise_distance(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value apart =
      l.add(l.sub(l.in("x1", wide), l.in("x2", wide)), l.number(l.real_number("eps"), wide));
  return {l.cast(
      vector_norm(l, apart, l.real_number("p"), {l.rank(apart) - 1}, l.call().flag("keepdim")),
      own)};
}

Values cross(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value a = l.in("self", own);
  const Value b = l.in("other", own);
  const Shape& shape = l.result().shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = 0;
  if (l.has("dim")) {
    axis = axis_of(l.call(), "dim", rank);
  } else {
    while (axis + 1 < rank && !(shape[at(axis)] == Int(3))) ++axis;
  }
  const auto turned = [&](Value x, const std::vector<std::int64_t>& order) {
    return l.gather(x, l.ints(order), axis - (rank - l.rank(x)));
  };
  const Value first = times(l, turned(a, {1, 2, 0}), turned(b, {2, 0, 1}));
  const Value second = times(l, turned(a, {2, 0, 1}), turned(b, {1, 2, 0}));
  return {is_complex(own) ? on_pairs(l, "Sub", first, second) : l.sub(first, second)};
}

Values vecdot(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value pairs = times(l, conjugate(l, l.in("x", own)), l.in("y", own));
  return {sum_over(l, pairs, {axis_of(l.call(), "dim", l.rank(pairs))})};
}

}  // namespace modelport::ops::onnx
