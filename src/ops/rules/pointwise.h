// Rules that the pointwise families share. The operands are `self` and, for two of them, `other`.
#pragma once

#include "ops/rules/rules.h"

namespace modelport::ops {

/// The shape of `self`; integers become floats (exp, sin, sigmoid).
Results floating_self(Call& call);
/// The shape of `self`; a complex number gives a real one (abs).
Results real_self(Call& call);
/// The shape of `self`, bool (isnan, logical_not).
Results truth_of_self(Call& call);

/// Broadcast and promoted (add, mul, maximum); either operand may be a number.
Results binary(Call& call);
/// Integers become floats (div, atan2).
Results binary_floating(Call& call);
/// Broadcast, bool (eq, logical_and).
Results compare(Call& call);

}  // namespace modelport::ops
