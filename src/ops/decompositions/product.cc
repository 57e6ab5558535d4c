// Products of vectors and matrices.
#include <algorithm>

#include "ops/decompositions/linear.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

/// beta * self + alpha * product; self counts for nothing where beta is zero, even if it is not a
/// number.
Value weighted(Emitter& e, Value y) {
  const double beta = e.real_number("beta");
  y = scaled(e, y, e.real_number("alpha"));
  return beta == 0 ? expanded(e, y, e.result().shape)
                   : add(e, y, scaled(e, e.tensor("self"), beta));
}

}  // namespace

Value addbmm(Emitter& e) {
  return weighted(e, sum_over(e, e.call("aten.bmm", {e.arg("batch1"), e.arg("batch2")}), {0}));
}

Value addmv(Emitter& e) { return weighted(e, product(e, e.tensor("mat"), e.tensor("vec"))); }

Value addr(Emitter& e) {
  return weighted(e, mul(e, with_axis_at(e, e.tensor("vec1"), 1), e.tensor("vec2")));
}

Value baddbmm(Emitter& e) {
  return weighted(e, e.call("aten.bmm", {e.arg("batch1"), e.arg("batch2")}));
}

Value bilinear(Emitter& e) {
  const Value a = e.tensor("input1");
  const Value b = e.tensor("input2");
  const Shape weight = e.shape(e.tensor("weight"));
  const Shape batch = leading(e.shape(a), e.rank(a) - 1);
  const Value rows = viewed(e, a, {numel(batch), weight[1]});
  // [rows, out, in2], then summed against the second operand.
  const Value matrix =
      viewed(e, permuted(e, e.tensor("weight"), {1, 0, 2}), {weight[1], weight[0] * weight[2]});
  const Value half =
      viewed(e, e.call("aten.mm", {rows, matrix}), {numel(batch), weight[0], weight[2]});
  const Value y = viewed(e, e.call("aten.bmm", {half, viewed(e, b, {numel(batch), weight[2], 1})}),
                         e.result().shape);
  return e.has("bias") ? add(e, y, e.tensor("bias")) : y;
}

Value dot(Emitter& e) {
  const bool named = schema_of(e.call().op()).find("tensor") != nullptr;
  return product(e, e.tensor("self"), e.tensor(named ? "tensor" : "other"));
}

Value inner(Emitter& e) {
  const Value a = e.tensor("self");
  const Value b = e.tensor("other");
  if (e.rank(a) == 0 || e.rank(b) == 0) return mul(e, a, b);
  const Int width = e.shape(a).back();
  const Value left = viewed(e, a, {numel(leading(e.shape(a), e.rank(a) - 1)), width});
  const Value right = viewed(e, b, {numel(leading(e.shape(b), e.rank(b) - 1)), width});
  return viewed(e, e.call("aten.mm", {left, transposed(e, right)}), e.result().shape);
}

Value int_mm(Emitter& e) {
  return e.call("aten.mm",
                {cast(e, e.tensor("self"), Dtype::i32), cast(e, e.tensor("mat2"), Dtype::i32)});
}

Value kron(Emitter& e) {
  const Value a = e.tensor("self");
  const Value b = e.tensor("other");
  const std::size_t rank = std::max(e.shape(a).size(), e.shape(b).size());
  const auto spread = [&](const Shape& shape, bool first) {
    Shape result;
    for (std::size_t i = 0; i < rank; ++i) {
      const Int size = i + shape.size() < rank ? Int(1) : shape[i + shape.size() - rank];
      result.push_back(first ? size : Int(1));
      result.push_back(first ? Int(1) : size);
    }
    return result;
  };
  const Value y =
      mul(e, viewed(e, a, spread(e.shape(a), true)), viewed(e, b, spread(e.shape(b), false)));
  return viewed(e, y, e.result().shape);
}

Value matmul(Emitter& e) { return product(e, e.tensor("self"), e.tensor("other")); }

Value mv(Emitter& e) { return product(e, e.tensor("self"), e.tensor("vec")); }

Value multi_dot(Emitter& e) {
  const bool named = schema_of(e.call().op()).find("matrices") != nullptr;
  const Values operands = e.ins(named ? "matrices" : "tensors");
  Value y = operands[0];
  for (std::size_t i = 1; i < operands.size(); ++i) y = product(e, y, operands[i]);
  return y;
}

Value outer(Emitter& e) { return mul(e, with_axis_at(e, e.tensor("self"), 1), e.tensor("vec2")); }

Value tensordot(Emitter& e) {
  Value a = e.tensor("self");
  Value b = e.tensor("other");
  const Axes summed_a = axis_list(e.call(), "dims_self", e.rank(a));
  const Axes summed_b = axis_list(e.call(), "dims_other", e.rank(b));
  for (std::size_t i = 0; i < summed_a.size(); ++i) {  // an axis of one element counts as often
    const Int one = e.shape(a)[at(summed_a[i])];
    const Int other = e.shape(b)[at(summed_b[i])];
    if (one == Int(1) && other != Int(1)) b = sum_over(e, b, {summed_b[i]}, true);
    if (other == Int(1) && one != Int(1)) a = sum_over(e, a, {summed_a[i]}, true);
  }
  const auto rest = [](std::int64_t rank, const Axes& summed) {
    Axes axes;
    for (std::int64_t i = 0; i < rank; ++i) {
      if (std::ranges::find(summed, i) == summed.end()) axes.push_back(i);
    }
    return axes;
  };
  Int width = 1;
  for (const std::int64_t axis : summed_a) width = width * e.shape(a)[at(axis)];
  Axes left = rest(e.rank(a), summed_a);
  left.insert(left.end(), summed_a.begin(), summed_a.end());
  Axes right = summed_b;
  const Axes kept = rest(e.rank(b), summed_b);
  right.insert(right.end(), kept.begin(), kept.end());
  Int columns = 1;
  for (const std::int64_t axis : kept) columns = columns * e.shape(b)[at(axis)];
  Int rows = 1;
  for (const std::int64_t axis : rest(e.rank(a), summed_a)) rows = rows * e.shape(a)[at(axis)];
  const Value y = e.call("aten.mm", {viewed(e, permuted(e, a, left), {rows, width}),
                                     viewed(e, permuted(e, b, right), {width, columns})});
  return viewed(e, y, e.result().shape);
}

}  // namespace modelport::ops::parts
