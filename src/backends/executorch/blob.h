// Bytes of a known length that somebody can put into a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "weights/quantize/scheme.h"
#include "weights/sink.h"
#include "weights/store.h"

namespace modelport::executorch {

struct Blob {
  std::uint64_t bytes = 0;
  std::function<void(weights::Sink&)> write;
};
/// Borrows nothing: the text is kept.
Blob blob_of(std::string text);

/// The blob of a tensor, its axes in another order: axis i is axis order[i]. It needs the memory of
/// the tensor while it is written.
Blob with_axes(Blob blob, Dtype dtype, const std::vector<std::int64_t>& shape,
               const std::vector<std::size_t>& order);

/// What a norm behind a convolution does with each channel, as numbers of the convolution's own.
/// Blobs of f32; those without bytes are missing.
struct NormFold {
  Blob filter, bias;  // of the convolution
  Blob mean, variance, scale, shift;
  double eps = 0;
};
/// The filter and the bias with the norm in them.
std::pair<Blob, Blob> folded_blobs(const NormFold& fold);

/// Codes and scales of a quantized weight, which must outlive them. The weight is quantized once,
/// when the codes are written, and scales wait in memory until it is their turn.
std::pair<Blob, Blob> quantized_blobs(const weights::Weight& weight, const weights::Scheme& scheme,
                                      const weights::QuantizedForm& form);

}  // namespace modelport::executorch
