// Scales that were found before a writer asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/quantize/fit.h"
#include "weights/quantize/scheme.h"

namespace modelport::weights {

/// What scales are searched for before anybody knows the layout: one that takes them as they are.
inline Scheme scheme_of_search(int bits, std::int64_t group, bool zero_points, Dtype scales) {
  return {.layout = QuantizedLayout::onnx_matmul_nbits,
          .bits = bits,
          .group = group,
          .zero_points = zero_points,
          .scales = scales};
}

/// Of the first groups of a weight, row by row; without input energies. The memory is its maker's.
struct FoundFits {
  Scheme scheme;
  std::int64_t columns = 0;
  std::span<const float> scales;
  std::span<const std::uint8_t> zero_points;  // as many, where the scheme has any

  /// Whether a weight with such rows gets the same fits by the other scheme: of a layout, only the
  /// scales that it takes matter.
  bool are_those_of(const Scheme& other, std::int64_t other_columns) const;
  /// The fits from group `first` on; false, and none of them, where one is not known.
  bool take(std::size_t first, std::span<Fit> fits) const;
};

}  // namespace modelport::weights
