// Losses in terms of other operators.
#pragma once

#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {

Value binary_cross_entropy(Emitter& e);
Value binary_cross_entropy_with_logits(Emitter& e);
Value cross_entropy_loss(Emitter& e);
Value huber_loss(Emitter& e);
Value kl_div(Emitter& e);
Value l1_loss(Emitter& e);
Value margin_ranking_loss(Emitter& e);
Value mse_loss(Emitter& e);
Value nll_loss(Emitter& e);
Values nll_loss_forward(Emitter& e);
Value poisson_nll_loss(Emitter& e);
Value smooth_l1_loss(Emitter& e);
Value soft_margin_loss(Emitter& e);
Value triplet_margin_loss(Emitter& e);

}  // namespace modelport::ops::parts
