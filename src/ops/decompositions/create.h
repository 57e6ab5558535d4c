// Tensors made from sizes and numbers, and random ones, in terms of other operators.
#pragma once

#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {

Value empty(Emitter& e);
Value eye(Emitter& e);
Value linspace(Emitter& e);
Value logspace(Emitter& e);
/// All elements are the number that the row takes.
Value filled(Emitter& e);
Value ones(Emitter& e);
Value triangle_indices(Emitter& e);
Value window(Emitter& e);  // of a signal
Value zeros(Emitter& e);

Value bernoulli(Emitter& e);
Value cauchy(Emitter& e);
Value exponential(Emitter& e);
Value geometric(Emitter& e);
Value log_normal(Emitter& e);
Value multinomial(Emitter& e);
Value normal(Emitter& e);
Value rand(Emitter& e);
Value randint(Emitter& e);
Value randn(Emitter& e);
Value random_integers(Emitter& e);
Value randperm(Emitter& e);
Value uniform(Emitter& e);

}  // namespace modelport::ops::parts
