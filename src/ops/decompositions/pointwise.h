// Pointwise operators in terms of others.
#pragma once

#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {

/// The operand itself.
Value same(Emitter& e);
/// The operand in the type of the result.
Value cast_to_result(Emitter& e);

// --- one operand
Value degrees_to_radians(Emitter& e);
Value entropy_term(Emitter& e);
Value erfc(Emitter& e);
Value exp2(Emitter& e);
Value frac(Emitter& e);
Values frexp(Emitter& e);
Value isfinite(Emitter& e);
Value isneginf(Emitter& e);
Value isposinf(Emitter& e);
Value logit(Emitter& e);
Value nan_to_num(Emitter& e);
Value radians_to_degrees(Emitter& e);
Value sign(Emitter& e);
Value signbit(Emitter& e);
Value sinc(Emitter& e);
Value spherical_bessel_j0(Emitter& e);
Value square(Emitter& e);

// --- two
Value copysign(Emitter& e);
Value fmax(Emitter& e);
Value fmin(Emitter& e);
Value heaviside(Emitter& e);
Value hypot(Emitter& e);
Value isclose(Emitter& e);
Value ldexp(Emitter& e);
Value logaddexp(Emitter& e);
Value logaddexp2(Emitter& e);
Value maximum(Emitter& e);
Value minimum(Emitter& e);
Value remainder(Emitter& e);
Value reversed_sub(Emitter& e);
/// A power of integers. Products wrap around, and are exact where kernels go through floats.
Value whole_power(Emitter& e);
Value xlog1py(Emitter& e);
Value xlogy(Emitter& e);

// --- three
Value addcdiv(Emitter& e);
Value addcmul(Emitter& e);
Value at_least(Emitter& e);  // clamp_min
Value at_most(Emitter& e);   // clamp_max
Value lerp(Emitter& e);
Value where(Emitter& e);

}  // namespace modelport::ops::parts
