// Comparisons happen in the type that both operands promote to.
#include "ops/onnx/compare.h"

#include <cmath>

#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Value complex_equal(Lower& l, Value a, Value b) {
  const Value parts = l.compare("Equal", l.as_pairs(a), l.as_pairs(b));
  const Value least = l.reduce("ReduceMin", l.cast(parts, Dtype::u8), {l.rank(parts) - 1}, false);
  return l.cast(least, Dtype::boolean);
}

Values compared(Lower& l, std::string_view op) {
  const Dtype common = promote(l.call(), {"self", "other"});
  const Value a = l.in("self", common), b = l.in("other", common);
  if (!is_complex(common)) return {l.compare(op, a, b)};
  if (op != "Equal") l.refuse("complex numbers have no order");
  return {complex_equal(l, a, b)};
}

Value truth(Lower& l, std::string_view name) {
  const Value x = l.in(name);
  if (!is_complex(l.dtype(x))) return l.cast(x, Dtype::boolean);
  return l.logical_not(complex_equal(l, x, l.number(0.0, l.dtype(x))));
}

Values logical(Lower& l, std::string_view op) {
  return {l.binary(op, truth(l, "self"), truth(l, "other"))};
}

Value close(Lower& l) {
  const Dtype common = promote(l.call(), {"self", "other"});
  if (is_complex(common)) l.refuse("no rule for complex numbers");
  const Dtype work = working_dtype(to_floating(common));
  const Value a = l.in("self", work), b = l.in("other", work);
  const Value distance = l.unary("Abs", l.sub(a, b));
  const Value margin = l.add(l.mul(l.unary("Abs", b), like(l, b, std::abs(l.real_number("rtol")))),
                             like(l, b, l.real_number("atol")));
  Value near = l.compare("LessOrEqual", distance, margin);
  if (!is_whole(common)) {
    // Infinities are close to themselves alone, and a margin may be infinite.
    near = l.binary("And", near, is_finite(l, distance));
    near = l.binary("Or", near, l.compare("Equal", a, b));
  }
  if (l.call().flag("equal_nan") && !is_whole(common))
    near = l.binary("Or", near, l.binary("And", is_nan(l, a), is_nan(l, b)));
  return near;
}

/// Sizes that may differ when the program runs: what both have is compared, and the sizes are.
Value equal_of_any_size(Lower& l, Value a, Value b) {
  const Value same_sizes =
      all_true(l, l.compare("Equal", l.sizes(l.shape(a)), l.sizes(l.shape(b))));
  const Int count = shape::min(numel(l.shape(a)), numel(l.shape(b)));
  const auto front = [&](Value x) {
    Value line = flat(l, x);
    return l.emit("Slice", {line, l.ints({0}), l.size(count), l.ints({0})}, {},
                  {l.dtype(x), {count}});
  };
  const Value same = all_true(l, l.compare("Equal", front(a), front(b)));
  return l.binary("And", same_sizes, same);
}

}  // namespace

Values compare_eq(Lower& l) { return compared(l, "Equal"); }
Values compare_ne(Lower& l) { return {l.logical_not(compared(l, "Equal")[0])}; }
Values compare_lt(Lower& l) { return compared(l, "Less"); }
Values compare_le(Lower& l) { return compared(l, "LessOrEqual"); }
Values compare_gt(Lower& l) { return compared(l, "Greater"); }
Values compare_ge(Lower& l) { return compared(l, "GreaterOrEqual"); }

Values isclose(Lower& l) { return {close(l)}; }
Values allclose(Lower& l) { return {all_true(l, close(l))}; }

Values equal(Lower& l) {
  const Value a = l.in("self"), b = l.in("other");
  if (is_complex(l.dtype(a))) l.refuse("no rule for complex numbers");
  if (l.rank(a) != l.rank(b)) return {l.number(std::int64_t{0}, Dtype::boolean)};
  const Value wide = l.cast(b, l.dtype(a));
  if (l.shape(a) == l.shape(b)) return {all_true(l, l.compare("Equal", a, wide))};
  return {equal_of_any_size(l, a, wide)};
}

Values is_nonzero(Lower& l) { return {truth(l, "self")}; }

Values logical_and(Lower& l) { return logical(l, "And"); }
Values logical_or(Lower& l) { return logical(l, "Or"); }
Values logical_xor(Lower& l) { return logical(l, "Xor"); }

}  // namespace modelport::ops::onnx
