// Convolutions, norms, pools, interpolation and recurrent layers in other rows.
#pragma once

#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

// Convolutions.
Value convolve(emit::Emitter& e);
Value convolve_by_name(emit::Emitter& e);
Value convolve_time_first(emit::Emitter& e);

// Norms.
Value batch_norm(emit::Emitter& e);
Values fused_rms_norm(emit::Emitter& e);
Value group_norm(emit::Emitter& e);
Value instance_norm(emit::Emitter& e);
Value layer_norm(emit::Emitter& e);
Value log_softmax(emit::Emitter& e);
Values native_batch_norm(emit::Emitter& e);
Value renorm(emit::Emitter& e);
Value rms_norm(emit::Emitter& e);
Value safe_softmax(emit::Emitter& e);
Value softmax(emit::Emitter& e);
Value weight_norm(emit::Emitter& e);

// Pools.
Value adaptive_avg_pool(emit::Emitter& e);
Values adaptive_max_pool(emit::Emitter& e);
Value avg_pool(emit::Emitter& e);
Value max_pool(emit::Emitter& e);
Values max_pool1d_with_indices(emit::Emitter& e);
Value max_unpool(emit::Emitter& e);

// Interpolation.
Value affine_grid(emit::Emitter& e);
Value grid_sampler(emit::Emitter& e);
/// For pictures and volumes of any size; not with cubic interpolation.
Value grid_sampler_by_gathering(emit::Emitter& e);
Value upsample_bicubic(emit::Emitter& e);
Value upsample_by_picking(emit::Emitter& e);
Value upsample_linear(emit::Emitter& e);
Value upsample_nearest(emit::Emitter& e);

// Recurrent layers.
Value gru_cell(emit::Emitter& e);
Values gru(emit::Emitter& e);
Values lstm(emit::Emitter& e);
Values lstm_cell(emit::Emitter& e);
Value rnn_relu_cell(emit::Emitter& e);
Values rnn_relu(emit::Emitter& e);
Value rnn_tanh_cell(emit::Emitter& e);
Values rnn_tanh(emit::Emitter& e);

}  // namespace modelport::ops::parts
