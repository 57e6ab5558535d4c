#include "weights/quantize/fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "weights/convert.h"

namespace modelport::weights {
namespace {

float rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + (bits >> 16 & 1U)) & 0xffff0000U);
}

float rounded_to_f16(float value) {
  std::uint16_t half = 0;
  float result = 0;
  convert(Dtype::f32, std::as_bytes(std::span(&value, 1)), Dtype::f16,
          std::as_writable_bytes(std::span(&half, 1)));
  convert(Dtype::f16, std::as_bytes(std::span(&half, 1)), Dtype::f32,
          std::as_writable_bytes(std::span(&result, 1)));
  return result;
}

}  // namespace

GroupFitter::GroupFitter(const Scheme& scheme)
    : levels_(1 << scheme.bits),
      zero_points_(scheme.zero_points),
      by_search_(scheme.choice == ScaleChoice::search),
      scale_dtype_(scheme.scales.value_or(facts(scheme.layout).scales)),
      search_({levels_, zero_points_, facts(scheme.layout).negative_scales}) {}

/// Of a positive or negative scale the nearest that its dtype holds, neither zero nor infinite; of
/// f32 and bf16 a normal one, for its inverse is finite.
float GroupFitter::stored(float scale) const {
  const float smallest = scale_dtype_ == Dtype::f16 ? 0x1p-24F : std::numeric_limits<float>::min();
  float magnitude = std::max(std::abs(scale), smallest);
  if (scale_dtype_ == Dtype::f16) {
    magnitude = rounded_to_f16(std::min(magnitude, 65504.0F));
  } else if (scale_dtype_ == Dtype::bf16) {
    magnitude = rounded_to_bf16(std::min(magnitude, 0x1.fep127F));
  } else {
    magnitude = std::min(magnitude, std::numeric_limits<float>::max());
  }
  return std::copysign(magnitude, scale);
}

Fit GroupFitter::from_range(const Range& range) const {
  const auto steps = static_cast<float>(levels_ - 1);
  if (!zero_points_) return {stored(range.largest() / (steps / 2)), levels_ / 2};
  const float low = std::min(range.lowest, 0.0F);
  const float high = std::max(range.highest, 0.0F);
  const float scale = stored((high - low) / steps);
  return {scale, static_cast<int>(std::clamp(std::nearbyint(-low / scale), 0.0F, steps))};
}

/// What is stored may differ from what was found, and then a scale of the range may be better.
Fit GroupFitter::better_of(std::size_t place, const Range& range, Fit found) const {
  const float largest = range.largest();
  if (largest == 0) return {1.0F, levels_ / 2};
  // Below this the inverse of the largest weight is infinite.
  if (largest < 4 * std::numeric_limits<float>::min()) return from_range(range);
  found.scale = stored(found.scale);
  if (scale_dtype_ == Dtype::f32) return found;
  const Fit plain = from_range(range);
  const std::span weights(batch_.weights[place], batch_.length);
  const bool weighted = batch_.energies[place] != nullptr;
  const std::span energies(batch_.energies[place], weighted ? batch_.length : 0);
  const SquareSums plain_sums = measure(weights, energies, window(plain));
  const SquareSums found_sums = measure(weights, energies, window(found));
  const bool won = weighted ? found_sums.weighted_error < plain_sums.weighted_error
                            : found_sums.error < plain_sums.error;
  return won ? found : plain;
}

void GroupFitter::search() {
  if (in_batch_ == 0) return;
  for (std::size_t i = in_batch_; i < kBatch; ++i) {  // lanes that are left over
    batch_.weights[i] = batch_.weights[0];
    batch_.energies[i] = batch_.energies[0];
  }
  const BatchFits found = search_.run(batch_);
  for (std::size_t i = 0; i < in_batch_; ++i) {
    *batch_fits_[i] =
        better_of(i, {found.lowest[i], found.highest[i]}, {found.scale[i], found.zero_point[i]});
  }
  in_batch_ = 0;
}

void GroupFitter::add(std::span<const float> weights, std::span<const float> energies, Fit* fit) {
  if (!by_search_) {
    const Range range = range_of(weights);
    *fit = range.largest() == 0 ? Fit{1.0F, levels_ / 2} : from_range(range);
    return;
  }
  batch_.length = weights.size();
  batch_.weights[in_batch_] = weights.data();
  batch_.energies[in_batch_] = energies.data();
  batch_fits_[in_batch_] = fit;
  if (++in_batch_ == kBatch) search();
}

std::span<const float> GroupFitter::energies_of(const GroupedRows& rows, std::size_t begin,
                                                std::size_t length) {
  if (rows.energies.empty()) return {};
  const std::span energies = rows.energies.subspan(begin, length);
  if (std::ranges::any_of(energies, [](float energy) { return energy > 0; })) return energies;
  ones_.resize(std::max(ones_.size(), length), 1.0F);
  return std::span(ones_).first(length);
}

void GroupFitter::fit(const GroupedRows& rows, std::span<Fit> fits) {
  const std::size_t whole = rows.columns / rows.group;
  const std::size_t row_count = rows.rows();
  const std::size_t groups_per_row = rows.groups_per_row();
  const auto add_groups = [&](std::size_t first, std::size_t last) {
    for (std::size_t row = 0; row < row_count; ++row) {
      for (std::size_t g = first; g < last; ++g) {
        const std::size_t begin = g * rows.group;
        const std::size_t length = std::min(rows.group, rows.columns - begin);
        add(rows.weights.subspan(row * rows.columns + begin, length),
            energies_of(rows, begin, length), &fits[row * groups_per_row + g]);
      }
    }
    search();  // a batch has groups of one length
  };
  add_groups(0, whole);
  add_groups(whole, groups_per_row);
}

}  // namespace modelport::weights
