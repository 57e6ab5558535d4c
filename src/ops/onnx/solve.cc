// Linear equations: triangular ones by halves, others by elimination spelled out.
#include <algorithm>

#include "ops/onnx/matrix.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/product.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

constexpr std::int64_t kMostSteps = 8;       // an elimination is some fifteen nodes a row
constexpr std::int64_t kMostRows = 1 << 12;  // a triangular inverse is four nodes a doubling

Value transposed(Lower& l, Value x) { return l.swap_axes(x, l.rank(x) - 2, l.rank(x) - 1); }

/// [..., i:i + 1, :]
Value row(Lower& l, Value x, std::int64_t i) { return l.slice(x, l.rank(x) - 2, i, i + 1); }
/// [..., :, i:i + 1]
Value column(Lower& l, Value x, std::int64_t i) { return l.slice(x, l.rank(x) - 1, i, i + 1); }

struct Eliminated {
  Value rest;     // what is right of the matrix, solved
  Value product;  // of the pivots, with the sign of the exchanges: [..., 1, 1]
};

/// Gauss and Jordan on [matrix | right], with the greatest pivot of each column.
Eliminated eliminated(Lower& l, Value whole, std::int64_t n) {
  const Dtype dtype = l.dtype(whole);
  const std::int64_t axis = l.rank(whole) - 2;
  const Value one = l.number(1.0, dtype);
  const Value zero = l.number(0.0, dtype);
  const Value places = l.unsqueeze(l.range(n), {1});
  Eliminated found{kNoValue, one};
  for (std::int64_t k = 0; k < n; ++k) {
    const Value sizes = l.unary("Abs", l.slice(column(l, whole, k), axis, k, n));
    Shape single = l.shape(sizes);
    single[at(axis)] = 1;
    Value pivot = l.emit("ArgMax", {sizes}, {{"axis", {Int(axis)}}, {"keepdims", {Int(1)}}},
                         {Dtype::i64, single});
    pivot = l.add(pivot, l.number(k, Dtype::i64));
    const Value chosen = l.compare("Equal", places, pivot);  // [..., n, 1]
    const Value best = l.reduce("ReduceSum", l.where(chosen, whole, zero), {axis}, true);
    const Value head = column(l, best, k);
    const Value own = row(l, whole, k);
    const Value stays = l.compare("Equal", pivot, l.number(k, Dtype::i64));
    found.product = l.mul(l.mul(head, found.product), l.where(stays, one, l.number(-1.0, dtype)));
    // A pivot of zero: the determinant is zero, and there is no solution to spoil.
    const Value divisor = l.where(l.compare("Equal", head, zero), one, head);
    const Value reduced = l.div(best, divisor);
    const Value exchanged = l.where(chosen, own, whole);
    const Value here = l.compare("Equal", places, l.number(k, Dtype::i64));
    const Value cleared = l.sub(exchanged, l.mul(column(l, exchanged, k), reduced));
    whole = l.where(here, reduced, cleared);
  }
  found.rest = l.slice(whole, axis + 1, n, l.shape(whole).back());
  return found;
}

Value right_of(Lower& l, Value matrix, Value right) {
  return l.concat({matrix, right}, l.rank(matrix) - 1);
}

void need_reals(Lower& l, Dtype dtype) {
  if (is_complex(dtype)) l.refuse("equations of complex numbers");
}

Value determinant(Lower& l) {
  const bool named = schema_of(l.call().op()).find("A") != nullptr;
  const Value x = l.in(named ? "A" : "self");
  need_reals(l, l.dtype(x));
  const Shape batch = leading(l.shape(x), l.rank(x) - 2);
  if (l.dtype(x) != Dtype::f64)
    return l.emit("Det", {l.cast(x, Dtype::f32)}, {}, {Dtype::f32, batch});
  const std::int64_t n = known_size(l, l.shape(x).back(), kMostSteps);
  const Value product = eliminated(l, x, n).product;
  return l.squeeze(product, {l.rank(product) - 2, l.rank(product) - 1});
}

}  // namespace

Value inverse_of(Lower& l, Value x) {
  need_reals(l, l.dtype(x));
  const std::int64_t n = known_size(l, l.shape(x).back(), kMostSteps);
  const Value one = l.expand(identity(l, n, l.dtype(x)), l.shape(x));
  return eliminated(l, right_of(l, x, one), n).rest;
}

Values det(Lower& l) { return {l.cast(determinant(l), l.result().dtype)}; }

Values logdet(Lower& l) { return {l.cast(l.unary("Log", determinant(l)), l.result().dtype)}; }

Values slogdet(Lower& l) {
  const Value found = determinant(l);
  return {l.cast(l.unary("Sign", found), l.result(0).dtype),
          l.cast(l.unary("Log", l.unary("Abs", found)), l.result(1).dtype)};
}

Values inverse(Lower& l) {
  const bool named = schema_of(l.call().op()).find("A") != nullptr;
  Values results{inverse_of(l, l.in(named ? "A" : "self"))};
  if (l.result_count() == 2)  // 0: it went well
    results.push_back(l.filled(l.number(std::int64_t{0}, Dtype::i32), l.result(1).shape));
  return results;
}

Values solve(Lower& l) {
  const Dtype own = l.result().dtype;
  need_reals(l, own);
  Value a = l.in("A");
  Value b = l.in("B");
  const bool left = l.call().flag("left");
  const Shape& result = l.result().shape;
  // The rule for vectors has an axis less than the matrices would.
  const bool vectors =
      l.rank(b) == 1 || (l.rank(a) == l.rank(b) + 1 &&
                         std::equal(l.shape(b).begin(), l.shape(b).end(), l.shape(a).begin()));
  if (vectors) b = l.unsqueeze(b, {l.rank(b)});
  const Shape batch = leading(result, static_cast<std::int64_t>(result.size()) - (vectors ? 1 : 2));
  if (!left && !vectors) {
    a = transposed(l, a);
    b = transposed(l, b);
  }
  const std::int64_t n = known_size(l, l.shape(a).back(), kMostSteps);
  a = l.expand(a, joined(batch, {n, n}));
  b = l.expand(b, joined(batch, {n, l.shape(b).back()}));
  const Value x = eliminated(l, right_of(l, a, b), n).rest;
  if (vectors) return {l.squeeze(x, {l.rank(x) - 1})};
  return {left ? x : transposed(l, x)};
}

// --- triangles
// ------------------------------------------------------------------------------------

Value triangular_inverse(Lower& l, Value x, bool upper, bool unit) {
  const Dtype dtype = l.dtype(x);
  const std::int64_t n = known_size(l, l.shape(x).back(), kMostRows);
  const std::int64_t last = l.rank(x) - 1;
  Value scale = kNoValue;  // the reciprocal of the diagonal, [..., n, 1]
  if (!unit) {
    const Value kept = l.where(diagonal_mask(l, n, n, 0), x, l.number(0.0, dtype));
    scale = l.unary("Reciprocal", l.reduce("ReduceSum", kept, {last}, true));
    x = l.mul(x, scale);
  }
  // With the inverses of the blocks on the diagonal known, those of blocks twice as large are
  // Y - Y C Y, where C is what lies between two neighbours.
  Value y = identity(l, n, dtype);
  for (std::int64_t size = 1; size < n; size *= 2) {
    const Value block = l.div(l.range(n), l.ints({size}));
    const Value down = l.unsqueeze(block, {1});
    const Value first = upper ? down : block;
    const Value second = upper ? block : down;
    const Value even = l.compare("Equal", l.binary("Mod", first, l.ints({2})), l.ints({0}));
    const Value next = l.compare("Equal", l.add(first, l.ints({1})), second);
    const Value between = l.emit("And", {even, next}, {}, {Dtype::boolean, {n, n}});
    const Value part = l.where(between, x, l.number(0.0, dtype));
    y = l.sub(y, size == 1 ? part : l.matmul(l.matmul(y, part), y));
  }
  return unit ? y : l.mul(y, l.reshape(scale, joined(leading(l.shape(x), last - 1), {1, n})));
}

Values solve_triangular(Lower& l) {
  const Dtype own = l.result().dtype;
  need_reals(l, own);
  const Value inverse = triangular_inverse(l, l.in("self", own), l.call().flag("upper"),
                                           l.call().flag("unitriangular"));
  const Value b = l.in("B", own);
  return {l.call().flag("left") ? l.matmul(inverse, b) : l.matmul(b, inverse)};
}

Values cholesky(Lower& l) {
  const Dtype own = l.result().dtype;
  need_reals(l, own);
  const Value x = l.in("self", own);
  const bool upper = l.call().flag("upper");
  const Value matrix = upper ? transposed(l, x) : x;  // torch reads that triangle alone
  const std::int64_t n = known_size(l, l.shape(x).back(), kMostSteps);
  const std::int64_t last = l.rank(x) - 1;
  const Value places = l.unsqueeze(l.range(n), {1});
  Values columns;
  for (std::int64_t k = 0; k < n; ++k) {
    Value rest = column(l, matrix, k);
    for (const Value before : columns) rest = l.sub(rest, l.mul(before, row(l, before, k)));
    const Value root = l.unary("Sqrt", row(l, rest, k));
    const Value above = l.compare("Less", places, l.number(k, Dtype::i64));
    columns.push_back(l.where(above, l.number(0.0, own), l.div(rest, root)));
  }
  const Value lower = l.concat(columns, last);
  return {upper ? transposed(l, lower) : lower};
}

Values cholesky_solve(Lower& l) {
  const Dtype own = l.result().dtype;
  need_reals(l, own);
  const bool upper = l.call().flag("upper");
  const Value inverse = triangular_inverse(l, l.in("input2", own), upper, false);
  const Value other = transposed(l, inverse);
  const Value b = l.in("self", own);
  return {upper ? l.matmul(inverse, l.matmul(other, b)) : l.matmul(other, l.matmul(inverse, b))};
}

}  // namespace modelport::ops::onnx
