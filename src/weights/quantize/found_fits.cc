#include "weights/quantize/found_fits.h"

namespace modelport::weights {

bool FoundFits::are_those_of(const Scheme& other, std::int64_t other_columns) const {
  const LayoutFacts &mine = facts(scheme.layout), &theirs = facts(other.layout);
  return columns == other_columns && scheme.bits == other.bits && scheme.group == other.group &&
         scheme.zero_points == other.zero_points && scheme.choice == other.choice &&
         scheme.scales.value_or(mine.scales) == other.scales.value_or(theirs.scales) &&
         mine.negative_scales == theirs.negative_scales;
}

bool FoundFits::take(std::size_t first, std::span<Fit> fits) const {
  if (first + fits.size() > scales.size()) return false;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    fits[i].scale = scales[first + i];
    fits[i].zero_point = scheme.zero_points ? zero_points[first + i] : 1 << (scheme.bits - 1);
  }
  return true;
}

}  // namespace modelport::weights
