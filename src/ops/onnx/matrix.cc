// Norms, differences, powers and exponentials of matrices.
#include "ops/onnx/matrix.h"

#include <cmath>

#include "ops/onnx/complex.h"
#include "ops/onnx/distance.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/product.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

std::int64_t known_size(Lower& l, const Int& size, std::int64_t most) {
  const auto known = size.constant();
  if (!known || *known > most)
    l.refuse(
        "ONNX has no such operator; it is spelled out for small matrices of a known size alone");
  return *known;
}

Value identity(Lower& l, const Int& size, Dtype dtype) {
  return l.cast(diagonal_mask(l, size, size, 0), dtype);
}

// --- norms
// ----------------------------------------------------------------------------------------

namespace {

std::optional<double> order_of(Lower& l) {
  const ir::Arg& arg = l.call().arg("ord");
  if (arg.is_none() || arg.get<std::string>() != nullptr) return std::nullopt;
  return l.real_number("ord");
}

/// 1 and infinity: the greatest sum of a column or of a row; below zero the least.
Value by_lines(Lower& l, Value x, double order, const std::vector<std::int64_t>& axes,
               bool keepdim) {
  if (std::abs(order) != 1 && !std::isinf(order))
    l.refuse("a norm by singular values: ONNX has none");
  const bool columns = std::abs(order) == 1;
  const std::int64_t summed = columns ? axes[0] : axes[1];
  const std::int64_t compared = columns ? axes[1] : axes[0];
  const Value sums = vector_norm(l, x, 1, {summed}, true);
  const Value y = l.reduce(order > 0 ? "ReduceMax" : "ReduceMin", sums, {compared}, true);
  return keepdim ? y : l.squeeze(y, axes);
}

}  // namespace

Values matrix_norm(Lower& l) {
  const Dtype own = l.result().dtype;
  Value x = l.in("self");
  const bool any_rank = l.call().op().name.starts_with("aten.linalg_norm");
  const std::vector<std::int64_t> axes = axes_of(l.call(), "dim", l.rank(x));
  const Dtype wide = working_dtype(own);
  if (!is_complex(l.dtype(x))) x = l.cast(x, wide);
  const bool keepdim = l.call().flag("keepdim");
  const ir::Arg& named = l.call().arg("ord");
  if (const auto* name = named.get<std::string>(); name != nullptr && *name != "fro")
    l.refuse("a norm by singular values: ONNX has none");
  const std::optional<double> order = order_of(l);
  const Value y = !order                         ? vector_norm(l, x, 2, axes, keepdim)
                  : any_rank && axes.size() == 1 ? vector_norm(l, x, *order, axes, keepdim)
                                                 : by_lines(l, x, *order, axes, keepdim);
  return {l.cast(y, own)};
}

Values trace(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value x = l.in("self", own);
  const Value kept =
      l.where(diagonal_mask(l, l.shape(x)[0], l.shape(x)[1], 0), x, l.number(std::int64_t{0}, own));
  return {sum_over(l, kept, {0, 1})};
}

Values diff(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value self = l.in("self", own);
  const std::int64_t axis = l.axis("dim", l.rank(self));
  Values parts;
  for (const std::string_view name : {"prepend", "self", "append"}) {
    if (!l.has(name)) continue;
    Value part = l.in(name, own);
    if (l.rank(part) == 0) part = l.expand(part, with_size(l.shape(self), axis, 1));
    parts.push_back(part);
  }
  Value x = l.concat(parts, axis);
  for (std::int64_t i = l.call().number("n"); i > 0; --i) {
    const Int size = l.shape(x)[at(axis)];
    const Value after = l.slice(x, axis, 1, size);
    const Value before = l.slice(x, axis, 0, size - 1);
    x = own == Dtype::boolean ? l.binary("Xor", after, before)
        : is_complex(own)     ? on_pairs(l, "Sub", after, before)
                              : l.sub(after, before);
  }
  return {x};
}

// --- powers
// ---------------------------------------------------------------------------------------

Values matrix_power(Lower& l) {
  Value x = l.in("self");
  std::int64_t exponent = l.call().number("n");
  if (exponent == 0) {
    const Dtype own = l.dtype(x);
    return {l.cast(l.expand(identity(l, l.shape(x).back(), to_real(own)), l.shape(x)), own)};
  }
  if (exponent < 0) {
    x = inverse_of(l, x);
    exponent = -exponent;
  }
  Value y = kNoValue;
  while (true) {
    if (exponent % 2 == 1) y = y == kNoValue ? x : product(l, y, x);
    exponent /= 2;
    if (exponent == 0) return {y};
    x = product(l, x, x);
  }
}

/// Scaled down to a norm of at most 1/2, as a power series, and squared back.
Values matrix_exp(Lower& l) {
  const Dtype own = l.result().dtype;
  if (is_complex(own)) l.refuse("the exponential of a complex matrix");
  const Dtype wide = working_dtype(own);
  const Value x = l.in("self", wide);
  const std::int64_t rank = l.rank(x);
  const auto number = [&](double value) { return l.number(value, wide); };
  // Beyond 2^10 the exponential has no number in any type.
  constexpr int kMostSquares = 11;
  const Value norm = by_lines(l, x, 1, {rank - 2, rank - 1}, true);
  const Value doubled = l.binary("Max", l.mul(norm, number(2)), number(1));
  const Value squares = l.unary("Ceil", l.mul(l.unary("Log", doubled), number(1 / std::log(2.0))));
  const Value small = l.div(x, l.binary("Pow", number(2), squares));
  const int terms = wide == Dtype::f64 ? 15 : 9;
  const Value one = identity(l, l.shape(x).back(), wide);
  Value y = one;
  for (int i = terms; i > 0; --i) y = l.add(l.mul(l.matmul(small, y), number(1.0 / i)), one);
  for (int i = 0; i < kMostSquares; ++i)
    y = l.where(l.compare("Less", number(i), squares), l.matmul(y, y), y);
  return {l.cast(y, own)};
}

}  // namespace modelport::ops::onnx
