// The length of a range whose ends may be symbolic integers or reals.
#include "ops/rules/arange.h"

#include <cmath>

namespace modelport::ops {
namespace {

using shape::Real;

bool is_whole(const ir::Arg& arg) {
  return arg.get<double>() == nullptr && arg.get<Real>() == nullptr;
}

/// The argument, or `otherwise` for overloads without it.
const ir::Arg& arg_or(const Call& call, std::string_view name, const ir::Arg& otherwise) {
  return schema_of(call.op()).find(name) == nullptr ? otherwise : call.arg(name);
}

Real as_real(Call& call, const ir::Arg& arg) {
  if (const double* value = arg.get<double>()) return Real(*value);
  if (const Real* value = arg.get<Real>()) return *value;
  if (const Int* value = arg.get<Int>()) return Real(*value);
  if (const bool* value = arg.get<bool>()) return Real(*value ? 1.0 : 0.0);
  call.fail("the ends of a range must be numbers");
}

Int as_int(Call& call, const ir::Arg& arg) {
  if (const Int* value = arg.get<Int>()) return *value;
  if (const bool* value = arg.get<bool>()) return Int(*value ? 1 : 0);
  return shape::trunc(as_real(call, arg));
}

/// Also for a step below zero: rounding up follows the sign of the step.
Int whole_length(Call& call, const Int& start, const Int& end, const Int& step) {
  const bool upward = call.at_least(step, 1);
  const Int span = upward ? end - start : start - end;
  const Int stride = upward ? step : -step;
  call.require(call.at_least(span, 0), "the step leads away from the end");
  return stride == Int(1) ? span : shape::ceil_div(span, stride);
}

Int real_length(const Real& start, const Real& end, const Real& step) {
  const auto a = start.constant(), b = end.constant(), s = step.constant();
  if (a && b && s) return Int(static_cast<std::int64_t>(std::ceil((*b - *a) / *s)));
  const Real span = Real::binary(Real::Op::sub, end, start);
  return shape::ceil(Real::binary(Real::Op::div, span, step));
}

}  // namespace

Results arange(Call& call) {
  static const ir::Arg kZero{Int(0)};
  static const ir::Arg kOne{Int(1)};
  const ir::Arg& start = arg_or(call, "start", kZero);
  const ir::Arg& end = call.arg("end");
  const ir::Arg& step = arg_or(call, "step", kOne);
  const bool whole = is_whole(start) && is_whole(end) && is_whole(step);
  const Dtype dtype = call.dtype("dtype").value_or(whole ? Dtype::i64 : Dtype::f32);
  // For an i64 result torch cuts the ends to integers first; for others it divides the numbers as
  // given.
  if (whole || dtype == Dtype::i64) {
    return one(dtype,
               {whole_length(call, as_int(call, start), as_int(call, end), as_int(call, step))});
  }
  return one(dtype, {real_length(as_real(call, start), as_real(call, end), as_real(call, step))});
}

}  // namespace modelport::ops
