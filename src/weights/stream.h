// Weights on their way to a file: piece by piece, as they are or in another floating-point type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "weights/convert.h"
#include "weights/safetensors_writer.h"
#include "weights/sink.h"
#include "weights/store.h"

namespace modelport::weights {

/// The dtype that a weight gets when floating-point weights are asked to be `floats`.
Dtype dtype_as(const Weight& weight, std::optional<Dtype> floats);

/// Puts the weight's bytes, converted to `dtype` if that differs from its own, into the sink. Pages
/// of a mapped file are given back on the way.
ConversionCounts stream(const Weight& weight, Dtype dtype, Sink& sink);

struct ConversionLoss {
  std::string name;
  Dtype from = Dtype::f32;
  Dtype to = Dtype::f32;
  ConversionCounts counts;
};

struct StreamOptions {
  std::optional<Dtype> floats;                    // convert floating-point weights to this type
  std::vector<ConversionLoss>* losses = nullptr;  // filled as the tensors are streamed
};

/// Each weight of the store once (tied names are left out), for save_safetensors. The store and
/// `losses` must outlive the result.
std::vector<TensorSource> tensor_sources(const WeightStore& store,
                                         const StreamOptions& options = {});

}  // namespace modelport::weights
