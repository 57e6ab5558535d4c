// Kernels that are right for a part of what torch takes, and what stands in for the rest.
#include "ops/executorch/guarded.h"

#include <algorithm>

#include "ops/decompositions/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::executorch {
namespace {

using parts::Terms;

Values read_truth(Lower& l, Value truth) {
  return l.kernel("aten::_local_scalar_dense", {{"self", {truth}}});
}

/// What is left of integers after a division. The kernels divide doubles, which lose the last
/// digits beyond 2^53, and their remainder has the sign of the dividend.
Values rest(Lower& l, std::string_view kernel, const char* rounding) {
  if (!is_integral(l.result().dtype)) return l.kernel_with_own_operands(kernel);
  Terms t(l);
  const Value a = t.in("self"), b = t.in("other");
  const Value times = l.call("aten.div.Tensor_mode", {a, b}, {{"rounding_mode", rounding}});
  return {t.sub(a, t.mul(times, b))};
}

/// The kernels go through doubles, and have no number for what overflows.
Values power(Lower& l, std::string_view kernel) {
  if (is_integral(l.result().dtype)) return {parts::whole_power(l)};
  return l.kernel_with_own_operands(kernel);
}

/// The processor takes the distance modulo the width; torch shifts everything out.
Values shifted(Lower& l, std::string_view kernel, bool left) {
  Terms t(l);
  const Dtype dtype = l.result().dtype;
  const auto bits = bit_count(dtype);
  const Value self = t.in("self"), by = t.in("other");
  const Value far = t.either(t.is("lt", by, 0), t.is("ge", by, bits));
  const Value near = t.where(far, left ? 0 : bits - 1, by);
  const Value moved = l.kernel(kernel, {{"self", {self}}, {"other", {near}}})[0];
  return {left ? t.where(far, 0, moved) : moved};
}

}  // namespace

Values cast(Lower& l) {
  const Value self = l.tensor("self");
  if (is_complex(l.dtype(self)) || is_complex(l.result().dtype))
    l.refuse("no rule for complex numbers");
  if (l.dtype(self) == l.result().dtype) return {self};
  return l.kernel("aten::_to_copy.out",
                  {{"self", {self}}, {"non_blocking", {false}}, {"memory_format", {}}});
}

Values is_nonzero(Lower& l) {
  Terms t(l);
  const Value self = l.tensor("self");
  return read_truth(l, l.dtype(self) == Dtype::boolean ? self : t.is("ne", self, 0));
}

Values equal(Lower& l) {
  Terms t(l);
  const Value a = l.tensor("self"), b = l.tensor("other");
  if (l.shape(a) != l.shape(b)) l.refuse("whether the shapes are the same is not known");
  return read_truth(l, t.of("all", t.is("eq", a, b)));
}

Values allclose(Lower& l) {
  Terms t(l);
  return read_truth(
      l, t.of("all", l.call("aten.isclose", {l.arg("self"), l.arg("other"), l.arg("rtol"),
                                             l.arg("atol"), l.arg("equal_nan")})));
}

Values cumsum(Lower& l) {
  const Value self = l.tensor("self");
  if (l.rank(self) == 0) return {Terms(l).done(self)};
  return l.kernel_with_own_operands("aten::cumsum.out");
}

Values fmod_scalar(Lower& l) { return rest(l, "aten::fmod.Scalar_out", "trunc"); }
Values fmod_tensor(Lower& l) { return rest(l, "aten::fmod.Tensor_out", "trunc"); }
Values pow_of_number(Lower& l) { return power(l, "aten::pow.Scalar_out"); }
Values pow_by_number(Lower& l) { return power(l, "aten::pow.Tensor_Scalar_out"); }
Values pow_of_tensors(Lower& l) { return power(l, "aten::pow.Tensor_Tensor_out"); }

// The kernel draws doubles and rounds them to the type: now and then to 1, which torch never gives.
Values rand(Lower& l) {
  const Value drawn = l.kernel_with_own_operands("aten::rand.out")[0];
  return {Terms(l).min(drawn, largest_below_one(l.result().dtype))};
}

Values remainder_scalar(Lower& l) { return rest(l, "aten::remainder.Scalar_out", "floor"); }
Values remainder_tensor(Lower& l) { return rest(l, "aten::remainder.Tensor_out", "floor"); }

Values sum(Lower& l) {
  const Value self = l.tensor("self");
  // Truths add up to no more than there are of them.
  if (!is_integral(l.dtype(self)) || !is_integral(l.result().dtype))
    return l.kernel_with_own_operands("aten::sum.IntList_out");
  // The kernel adds floats, which lose the last digits beyond 2^24. A product adds integers.
  Terms t(l);
  const Value x = t.in("self");
  const std::vector<std::int64_t> axes = parts::axes_of_call(l, l.rank(x));
  parts::Axes order;
  Shape kept, summed;
  for (std::int64_t axis = 0; axis < l.rank(x); ++axis)
    if (std::ranges::find(axes, axis) == axes.end()) order.push_back(axis);
  for (const std::int64_t axis : order) kept.push_back(l.shape(x)[parts::at(axis)]);
  for (const std::int64_t axis : axes) {
    order.push_back(axis);
    summed.push_back(l.shape(x)[parts::at(axis)]);
  }
  const Value rows = t.reshape(parts::permuted(l, x, order), {numel(kept), numel(summed)});
  const Value ones = parts::filled(l, {numel(summed), Int(1)}, 1, l.result().dtype);
  return {t.reshape(l.call("aten.mm", {rows, ones}), l.result().shape)};
}

Values shift_left(Lower& l) { return shifted(l, "aten::bitwise_left_shift.Tensor_out", true); }
Values shift_right(Lower& l) { return shifted(l, "aten::bitwise_right_shift.Tensor_out", false); }

}  // namespace modelport::ops::executorch
