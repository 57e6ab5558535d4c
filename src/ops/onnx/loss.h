// ONNX cells of losses.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values binary_cross_entropy(Lower& l);
Values binary_cross_entropy_with_logits(Lower& l);
Values cross_entropy_loss(Lower& l);
Values huber_loss(Lower& l);
Values kl_div(Lower& l);
Values l1_loss(Lower& l);
Values margin_ranking_loss(Lower& l);
Values mse_loss(Lower& l);
Values nll_loss(Lower& l);
Values nll_loss_forward(Lower& l);
Values poisson_nll_loss(Lower& l);
Values smooth_l1_loss(Lower& l);
Values soft_margin_loss(Lower& l);
Values triplet_margin_loss(Lower& l);

}  // namespace modelport::ops::onnx
