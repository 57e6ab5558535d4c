// Activations and dropout in terms of other operators.
#pragma once

#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {

Value celu(Emitter& e);
Value dropout(Emitter& e);
Value hardshrink(Emitter& e);
Value hardsigmoid(Emitter& e);
Value hardswish(Emitter& e);
Value log_sigmoid(Emitter& e);
Values log_sigmoid_forward(Emitter& e);
Value mish(Emitter& e);
Values native_dropout(Emitter& e);
Value prelu(Emitter& e);
Value relu6(Emitter& e);
Value rrelu(Emitter& e);
Value selu(Emitter& e);
Value silu(Emitter& e);
Value softplus(Emitter& e);
Value softshrink(Emitter& e);
Value threshold(Emitter& e);

/// log(1 + exp x) without overflow.
Value softplus_of(Terms& t, Value x);

}  // namespace modelport::ops::parts
