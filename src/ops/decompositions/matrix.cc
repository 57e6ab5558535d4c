// Matrices by products and masks.
#include "ops/decompositions/linear.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

constexpr std::string_view kFixedMatrix = "the matrices must have a fixed size";

Value unit_matrix(Emitter& e, std::int64_t n, Dtype dtype) {
  std::vector<double> values(at(n * n), 0);
  for (std::int64_t i = 0; i < n; ++i) values[at(i * n + i)] = 1;
  return e.constant(dtype, {n, n}, values);
}

/// Whether block (i, k) of this size is the neighbour of an even one, off the diagonal.
Value neighbours(Emitter& e, std::int64_t n, std::int64_t size, bool upper) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t first = (upper ? i : k) / size;
      const std::int64_t second = (upper ? k : i) / size;
      values.push_back(first % 2 == 0 && second == first + 1 ? 1 : 0);
    }
  }
  return e.constant_ints(Dtype::boolean, {n, n}, values);
}

/// With the inverses of the blocks on the diagonal known, those of blocks twice as large are
/// Y - Y C Y, where C is what lies between two neighbours.
Value triangular_inverse(Emitter& e, Value x, bool upper, bool unit) {
  const Dtype dtype = e.dtype(x);
  const std::int64_t n = known(e, e.shape(x).back(), kFixedMatrix);
  if (n > 1024) e.refuse("a triangular matrix of more than 1024 rows");
  Value scale = kNoValue;
  if (!unit) {
    scale = e.call("aten.reciprocal", {e.call("aten.diagonal", {x, 0, -2, -1})});
    x = mul(e, x, e.call("aten.unsqueeze", {scale, -1}));
  }
  Value y = expanded(e, unit_matrix(e, n, dtype), e.shape(x));
  const Value zero = e.number(0.0, dtype);
  for (std::int64_t size = 1; size < n; size *= 2) {
    const Value part = where(e, neighbours(e, n, size, upper), x, zero);
    y = sub(e, y, size == 1 ? part : product(e, product(e, y, part), y));
  }
  return unit ? y : mul(e, y, e.call("aten.unsqueeze", {scale, -2}));
}

}  // namespace

Value solve_triangular(Emitter& e) {
  const Value inverse = triangular_inverse(e, e.tensor("self"), e.call().flag("upper"),
                                           e.call().flag("unitriangular"));
  const Value b = e.tensor("B");
  return e.call().flag("left") ? product(e, inverse, b) : product(e, b, inverse);
}

Value diff(Emitter& e) {
  Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  Values pieces;
  if (e.has("prepend")) pieces.push_back(e.tensor("prepend"));
  pieces.push_back(x);
  if (e.has("append")) pieces.push_back(e.tensor("append"));
  if (pieces.size() > 1) x = e.call("aten.cat", {pieces, axis});
  for (std::int64_t i = 0; i < e.call().number("n"); ++i) {
    const Int size = e.shape(x)[at(axis)];
    const Value later = sliced(e, x, axis, 1, size);
    const Value earlier = sliced(e, x, axis, 0, size - 1);
    x = e.dtype(x) == Dtype::boolean ? e.call("aten.logical_xor", {later, earlier})
                                     : sub(e, later, earlier);
  }
  return x;
}

Value trace(Emitter& e) {
  const Value line = e.call("aten.diagonal", {e.arg("self")});
  return sum_over(e, cast(e, line, e.result().dtype), {0});
}

Value matrix_power(Emitter& e) {
  const Value x = e.tensor("self");
  std::int64_t n = e.call().number("n");
  if (n < 0) e.refuse("the runtime has no kernel that inverts a matrix");
  if (n == 0) {
    const std::int64_t size = known(e, e.shape(x).back(), kFixedMatrix);
    return expanded(e, unit_matrix(e, size, e.dtype(x)), e.shape(x));
  }
  Value result = kNoValue;
  for (Value square = x; n > 0; n /= 2) {
    if (n % 2 == 1) result = result == kNoValue ? square : product(e, result, square);
    if (n > 1) square = product(e, square, square);
  }
  return result;
}

/// The root of the sum of squares; other norms of matrices need singular values or a maximum.
Value matrix_norm(Emitter& e) {
  Value x = e.tensor("self");
  if (is_complex(e.dtype(x))) e.refuse("no rule for complex numbers");
  x = cast(e, x, e.result().dtype);
  const ir::Arg& dim = e.call().arg("dim");
  const Axes axes =
      dim.is_none() ? axes_in_order(e.rank(x)) : axis_list(e.call(), "dim", e.rank(x));
  const ir::Arg& kind = e.call().arg("ord");
  const std::string* text = kind.get<std::string>();
  const bool keepdim = e.call().flag("keepdim");
  const bool is_vector = axes.size() == 1;
  if (kind.is_none() || (text != nullptr && *text == "fro") ||
      (is_vector && text == nullptr && e.real_number("ord") == 2))
    return e.call("aten.sqrt", {sum_over(e, mul(e, x, x), axes, keepdim)});
  if (text == nullptr && is_vector)
    return e.call("aten.linalg_vector_norm", {x, kind, emit::int_list(axes), keepdim});
  const double order = text == nullptr ? e.real_number("ord") : 0;
  if (axes.size() != 2 || (order != 1 && order != -1))
    e.refuse("a norm that needs singular values");
  Value columns = sum_over(e, e.call("aten.abs", {x}), {axes[0]}, true);
  columns = e.call(order > 0 ? "aten.amax" : "aten.amin", {columns, {axes[1]}, true});
  return viewed(e, columns, e.result().shape);
}

}  // namespace modelport::ops::parts
