// A matrix on its way to a file with its axes swapped, in pieces.
#pragma once

#include "weights/convert.h"
#include "weights/store.h"

namespace modelport::weights {

/// Puts the bytes of the transposed matrix, converted to `dtype` if that differs, into the sink.
ConversionCounts stream_transposed(const Weight& matrix, Dtype dtype, Sink& sink);

}  // namespace modelport::weights
