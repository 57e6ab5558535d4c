// Matrix products as MatMul and Gemm.
#include "ops/onnx/product.h"

#include <algorithm>
#include <numeric>

#include "ops/onnx/complex.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

Value product(Lower& l, Value a, Value b) {
  if (!is_complex(l.dtype(a))) return l.matmul(a, b);
  const Value ar = l.real_part(a), ai = l.imaginary_part(a);
  const Value br = l.real_part(b), bi = l.imaginary_part(b);
  return l.make_complex(l.sub(l.matmul(ar, br), l.matmul(ai, bi)),
                        l.add(l.matmul(ar, bi), l.matmul(ai, br)));
}

Value times(Lower& l, Value a, Value b) {
  return is_complex(l.dtype(a)) ? complex_product(l, a, b) : l.mul(a, b);
}

Value sum_over(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim) {
  if (axes.empty()) return x;
  if (is_complex(l.dtype(x))) return l.from_pairs(sum_over(l, l.as_pairs(x), axes, keepdim));
  return l.reduce("ReduceSum", x, axes, keepdim);
}

Value conjugate(Lower& l, Value x) {
  if (!is_complex(l.dtype(x))) return x;
  const Value pairs = l.as_pairs(x);
  return l.from_pairs(l.mul(pairs, l.constant(l.dtype(pairs), {2}, {1, -1})));
}

namespace {

/// Types that Gemm has kernels for, or that onnxruntime casts for it. Its kernel for f16 is a
/// hundred times slower than that of MatMul where a factor is transposed.
bool has_gemm(Dtype dtype) { return is_floating(dtype) && dtype != Dtype::f16; }

Value plus(Lower& l, Value a, Value b) {
  return is_complex(l.dtype(a)) ? on_pairs(l, "Add", a, b) : l.add(a, b);
}

}  // namespace

Values linear(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value x = l.in("input", wide);
  const Value weight = l.in("weight");
  const Value bias = l.in("bias", wide);
  const bool sums_something = l.shape(x).back().constant() != 0;
  if (bias != kNoValue && l.rank(x) == 2 && l.rank(weight) == 2 && has_gemm(wide) && sums_something)
    return {l.cast(l.emit("Gemm", {x, l.cast(weight, wide), bias}, {{"transB", {Int(1)}}},
                          {wide, l.result().shape}),
                   own)};
  // The writer stores a weight transposed where only its transpose is used.
  const Value right = l.rank(weight) == 2 ? l.transpose(weight, {1, 0}) : weight;
  Value y = product(l, x, l.cast(right, wide));
  if (bias != kNoValue) y = plus(l, y, bias);
  return {l.cast(y, own)};
}

Values matmul(Lower& l) {
  const Schema& schema = schema_of(l.call().op());
  const Value other = l.in(schema.find("other") != nullptr  ? "other"
                           : schema.find("mat2") != nullptr ? "mat2"
                                                            : "vec");
  return {product(l, l.in("self"), other)};
}

Values int_mm(Lower& l) { return {l.matmul(l.in("self", Dtype::i32), l.in("mat2", Dtype::i32))}; }

namespace {

struct Factors {
  std::string_view left, right;
};

Factors factors_of(std::string_view op) {
  if (op == "aten.addmm") return {"mat1", "mat2"};
  if (op == "aten.addmv") return {"mat", "vec"};
  if (op == "aten.addr") return {"vec1", "vec2"};
  return {"batch1", "batch2"};
}

}  // namespace

Values added_product(Lower& l) {
  const std::string_view op = l.call().op().name;
  const auto [left, right] = factors_of(op);
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const double alpha = l.real_number("alpha");
  const double beta = l.real_number("beta");
  const Value added = beta == 0 ? kNoValue : l.in("self", wide);
  Value a = l.in(left, wide);
  Value b = l.in(right, wide);
  if (op == "aten.addmm" && has_gemm(wide))
    return {l.cast(l.emit("Gemm", {a, b, added}, {{"alpha", {alpha}}, {"beta", {beta}}},
                          {wide, l.result().shape}),
                   own)};
  if (op == "aten.addr") {
    a = l.unsqueeze(a, {1});
    b = l.unsqueeze(b, {0});
  }
  Value y = op == "aten.addr" ? times(l, a, b) : product(l, a, b);
  if (op == "aten.addbmm") y = sum_over(l, y, {0});
  if (alpha != 1) y = times(l, y, l.number(alpha, wide));
  if (added != kNoValue) y = plus(l, y, beta == 1 ? added : times(l, added, l.number(beta, wide)));
  return {l.cast(y, own)};
}

Values dot(Lower& l) {
  const bool first_conjugate = l.call().op().name == "aten.vdot";
  const Value a = l.in("self");
  const Value b = l.in(first_conjugate ? "other" : "tensor");
  return {product(l, first_conjugate ? conjugate(l, a) : a, b)};
}

Values outer(Lower& l) {
  const Dtype own = l.result().dtype;
  return {times(l, l.unsqueeze(l.in("self", own), {1}), l.unsqueeze(l.in("vec2", own), {0}))};
}

namespace {

/// The product over pairs of axes, in the order given; both sides are flattened to matrices.
Value summed(Lower& l, Value a, Value b, const std::vector<std::int64_t>& axes_a,
             const std::vector<std::int64_t>& axes_b) {
  const auto others = [&](Value x, const std::vector<std::int64_t>& axes) {
    std::vector<std::int64_t> kept;
    for (std::int64_t i = 0; i < l.rank(x); ++i) {
      if (std::ranges::find(axes, i) == axes.end()) kept.push_back(i);
    }
    return kept;
  };
  const auto sizes = [&](Value x, const std::vector<std::int64_t>& axes) {
    Shape shape;
    for (const std::int64_t axis : axes)
      shape.push_back(l.shape(x)[static_cast<std::size_t>(axis)]);
    return shape;
  };
  const std::vector<std::int64_t> rows = others(a, axes_a);
  const std::vector<std::int64_t> columns = others(b, axes_b);
  const Shape row_sizes = sizes(a, rows);
  const Shape column_sizes = sizes(b, columns);
  const Int inner = numel(sizes(a, axes_a));
  const auto joined_axes = [](std::vector<std::int64_t> x, const std::vector<std::int64_t>& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  };
  const Value left =
      l.reshape(l.transpose(a, joined_axes(rows, axes_a)), {numel(row_sizes), inner});
  const Value right =
      l.reshape(l.transpose(b, joined_axes(axes_b, columns)), {inner, numel(column_sizes)});
  return l.reshape(product(l, left, right), joined(row_sizes, column_sizes));
}

}  // namespace

Values inner(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value a = l.in("self", own);
  const Value b = l.in("other", own);
  if (l.rank(a) == 0 || l.rank(b) == 0) return {times(l, a, b)};
  if (l.rank(b) == 1) return {product(l, a, b)};
  return {summed(l, a, b, {l.rank(a) - 1}, {l.rank(b) - 1})};
}

Values tensordot(Lower& l) {
  Value a = l.in("self");
  Value b = l.in("other");
  std::vector<std::int64_t> axes_a = axis_list(l.call(), "dims_self", l.rank(a));
  std::vector<std::int64_t> axes_b = axis_list(l.call(), "dims_other", l.rank(b));
  // An axis of one element stands for as many equal ones as the other side has.
  for (std::size_t i = 0; i < axes_a.size(); ++i) {
    const Int size_a = l.shape(a)[static_cast<std::size_t>(axes_a[i])];
    const Int size_b = l.shape(b)[static_cast<std::size_t>(axes_b[i])];
    if (size_a == size_b) continue;
    if (size_a == Int(1)) b = sum_over(l, b, {axes_b[i]}, true);
    if (size_b == Int(1)) a = sum_over(l, a, {axes_a[i]}, true);
  }
  return {summed(l, a, b, axes_a, axes_b)};
}

Values kron(Lower& l) {
  const Dtype own = l.result().dtype;
  Value a = l.in("self", own);
  Value b = l.in("other", own);
  const std::int64_t rank = std::max(l.rank(a), l.rank(b));
  const auto lifted = [&](Value x) {
    std::vector<std::int64_t> front(static_cast<std::size_t>(rank - l.rank(x)));
    std::iota(front.begin(), front.end(), 0);
    return l.unsqueeze(x, front);
  };
  a = lifted(a);
  b = lifted(b);
  std::vector<std::int64_t> odd, even;
  for (std::int64_t i = 0; i < rank; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  return {l.reshape(times(l, l.unsqueeze(a, odd), l.unsqueeze(b, even)), l.result().shape)};
}

Values bilinear(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value a = l.in("input1", wide);
  const Value b = l.in("input2", wide);
  const Value weight = l.in("weight", wide);
  const Shape sizes = l.shape(weight);  // [out, first, second]
  // a [..., first] @ [first, out * second] -> [..., out, second] @ b [..., second, 1]
  const Value flat = l.reshape(l.transpose(weight, {1, 0, 2}), {sizes[1], sizes[0] * sizes[2]});
  Shape split = l.shape(a);
  split.back() = sizes[0];
  split.push_back(sizes[2]);
  const Value half = l.reshape(l.matmul(a, flat), split);
  Value y = l.squeeze(l.matmul(half, l.unsqueeze(b, {l.rank(b)})), {l.rank(half) - 1});
  if (l.has("bias")) y = l.add(y, l.in("bias", wide));
  return {l.cast(y, own)};
}

Values chain(Lower& l) {
  const bool multi = l.call().op().name == "aten.linalg_multi_dot";
  const Values factors = l.ins(multi ? "tensors" : "matrices");
  Value y = factors[0];
  for (std::size_t i = 1; i < factors.size(); ++i) y = product(l, y, factors[i]);
  return {y};
}

}  // namespace modelport::ops::onnx
