// Floating-point conversion between f64, f32, f16 and bf16, rounded once, to nearest even, with a
// count of what did not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "weights/sink.h"

namespace modelport::weights {

struct ConversionCounts {
  std::uint64_t overflows = 0;   // finite became infinite
  std::uint64_t underflows = 0;  // not zero became zero
  ConversionCounts& operator+=(const ConversionCounts& other) {
    overflows += other.overflows;
    underflows += other.underflows;
    return *this;
  }
  bool operator==(const ConversionCounts&) const = default;
};

constexpr bool can_convert(Dtype dtype) {
  return dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

/// `in` and `out` hold equally many elements, need no alignment and do not overlap. NaN stays NaN,
/// with as much of its payload as fits.
ConversionCounts convert(Dtype from, std::span<const std::byte> in, Dtype to,
                         std::span<std::byte> out);

/// Converts piece by piece, so that memory does not grow with the tensor.
ConversionCounts convert_to(Sink& sink, Dtype from, std::span<const std::byte> in, Dtype to);

}  // namespace modelport::weights
