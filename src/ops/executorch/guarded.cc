// Kernels that are right for a part of what torch takes, and what stands in for the rest.
#include "ops/executorch/guarded.h"

#include "ops/decompositions/terms.h"
#include "ops/rules/rules.h"

namespace modelport::ops::executorch {
namespace {

using parts::Terms;

Values read_truth(Lower& l, Value truth) {
  return l.kernel("aten::_local_scalar_dense", {{"self", {truth}}});
}

/// The kernel's remainder of integers has the sign of the dividend, torch's that of the divisor.
Values remainder(Lower& l, std::string_view kernel) {
  if (is_floating(l.result().dtype)) return l.kernel_with_own_operands(kernel);
  Terms t(l);
  const Value a = t.in("self"), b = t.in("other");
  const Value rest = l.call("aten.fmod.Tensor", {a, b});
  const Value signs = l.call("aten.logical_xor", {t.is("lt", rest, 0), t.is("lt", b, 0)});
  const Value wrong = t.both(t.is("ne", rest, 0), signs);
  return {t.where(wrong, t.add(rest, b), rest)};
}

/// The processor takes the distance modulo the width; torch shifts everything out.
Values shifted(Lower& l, std::string_view kernel, bool left) {
  Terms t(l);
  const Dtype dtype = l.result().dtype;
  const auto bits = static_cast<std::int64_t>(8 * byte_size(dtype));
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

Values remainder_scalar(Lower& l) { return remainder(l, "aten::remainder.Scalar_out"); }
Values remainder_tensor(Lower& l) { return remainder(l, "aten::remainder.Tensor_out"); }
Values shift_left(Lower& l) { return shifted(l, "aten::bitwise_left_shift.Tensor_out", true); }
Values shift_right(Lower& l) { return shifted(l, "aten::bitwise_right_shift.Tensor_out", false); }

}  // namespace modelport::ops::executorch
