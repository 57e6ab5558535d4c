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

// Candidates span from a little more than the range of a group down to a few deviations, beyond
// which codes would serve few weights. On normal, uniform and heavy-tailed weights the error is
// then within 1 % of what a dense search finds, within 3 % with zero points.
constexpr float kWidest = 1.1F;      // times the range
constexpr float kNarrowest4 = 2.2F;  // deviations
constexpr float kNarrowest8 = 3.4F;

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

float eighth_root(float value) { return std::sqrt(std::sqrt(std::sqrt(value))); }

}  // namespace

GroupFitter::GroupFitter(const Scheme& scheme)
    : levels_(1 << scheme.bits),
      zero_points_(scheme.zero_points),
      negative_scales_(facts(scheme.layout).negative_scales),
      search_(scheme.choice == ScaleChoice::search),
      scale_dtype_(scheme.scales.value_or(facts(scheme.layout).scales)) {}

Window GroupFitter::window(const Fit& fit) const {
  return {fit.scale, static_cast<float>(-fit.zero_point),
          static_cast<float>(levels_ - 1 - fit.zero_point)};
}

/// Of a positive or negative scale the nearest that its dtype holds, neither zero nor infinite; of
/// f32 and bf16 a normal one, for its inverse is finite.
float GroupFitter::stored(float scale) const {
  const bool half = scale_dtype_ == Dtype::f16;
  const float smallest = half ? 0x1p-24F : std::numeric_limits<float>::min();
  const float largest = half                          ? 65504.0F
                        : scale_dtype_ == Dtype::bf16 ? 0x1.fep127F
                                                      : std::numeric_limits<float>::max();
  const float magnitude = std::clamp(std::abs(scale), smallest, largest);
  const float rounded = half                          ? rounded_to_f16(magnitude)
                        : scale_dtype_ == Dtype::bf16 ? rounded_to_bf16(magnitude)
                                                      : magnitude;
  return std::copysign(rounded, scale);
}

Fit GroupFitter::from_range(const Range& range) const {
  const auto steps = static_cast<float>(levels_ - 1);
  if (!zero_points_) return {stored(range.largest() / (steps / 2)), levels_ / 2};
  const float low = std::min(range.lowest, 0.0F);
  const float high = std::max(range.highest, 0.0F);
  const float scale = stored((high - low) / steps);
  return {scale, static_cast<int>(std::clamp(std::nearbyint(-low / scale), 0.0F, steps))};
}

/// Where the middle of the codes lies: for a span that covers the range in the middle of that, and
/// the shorter the span, the nearer to the mean of the weights.
int GroupFitter::centred_zero_point(const Bounds& bounds, float span) const {
  const auto steps = static_cast<float>(levels_ - 1);
  const float part = std::min(span / bounds.half_range, 1.0F);
  const float centre = bounds.mean + (bounds.centre - bounds.mean) * part;
  return static_cast<int>(std::clamp(std::nearbyint(steps / 2 * (1 - centre / span)), 0.0F, steps));
}

void GroupFitter::try_spans(const WeightedGroup& unit, const Bounds& bounds, const Spans& spans,
                            Best& best) const {
  const float half_steps = static_cast<float>(levels_ - 1) / 2;
  Trials trials;
  std::array<int, kTrials> zero_points{};
  std::array<float, kTrials> tried{};
  float span = spans.first;
  for (std::size_t t = 0; t < kTrials; ++t, span *= spans.ratio) {
    zero_points[t] = zero_points_ ? centred_zero_point(bounds, span) : levels_ / 2;
    const Window window = this->window({spans.sign * span / half_steps, zero_points[t]});
    tried[t] = span;
    trials.scale[t] = window.scale;
    trials.low[t] = window.low;
    trials.high[t] = window.high;
  }
  const Correlations sums = correlate(unit, trials);
  for (std::size_t t = 0; t < kTrials; ++t) {
    const float correction = sums.dq[t] / sums.qq[t];
    const float scale = trials.scale[t];
    const float error = (sums.dd[t] - sums.dq[t] * correction) * (scale * scale);
    if (!(error < best.error)) continue;  // it is not a number where all codes are zero
    best = {error, {scale * (1 + correction), zero_points[t]}, tried[t], spans.sign};
  }
}

/// The scale with the least error among candidates, each the best one for the codes that it gives.
Fit GroupFitter::searched(const WeightedGroup& unit, const Range& range) const {
  const Moments moments = moments_of(unit);
  Bounds bounds{.mean = moments.mean};
  if (zero_points_) {
    bounds.half_range = (range.highest - range.lowest) / 2;
    bounds.centre = (range.highest + range.lowest) / 2;
  }
  const float widest = bounds.half_range * kWidest;
  const float cut = std::sqrt(moments.mean_square) * (levels_ == 16 ? kNarrowest4 : kNarrowest8);
  const float narrowest = std::min(cut, bounds.half_range * 0.8F);
  float ratio = eighth_root(narrowest / widest);
  // There is one code more below zero than above it, and the largest weight may have that one.
  const float sign =
      negative_scales_ && !zero_points_ && range.highest > -range.lowest ? -1.0F : 1.0F;

  Best best;
  try_spans(unit, bounds, {widest, ratio, sign}, best);
  // As many again between the two neighbours of the best. In a short group the first ones lie close
  // together, for its largest weight is no outlier: enough for 16 codes.
  const std::size_t count = unit.weights.size();
  const int rounds = count > 256 ? 2 : (count > 64 || levels_ > 16 ? 1 : 0);
  for (int i = 0; i < rounds; ++i) {
    const float half_step = eighth_root(ratio);
    try_spans(unit, bounds, {best.span / ratio * half_step, half_step * half_step, best.sign},
              best);
    ratio = half_step * half_step;
  }
  return best.fit;
}

Fit GroupFitter::fit(std::span<const float> weights, std::span<const float> energies) {
  const Range range = range_of(weights);
  const float largest = range.largest();
  if (largest == 0) return {1.0F, levels_ / 2};
  const Fit plain = from_range(range);
  // Below this the inverse of the largest weight is infinite.
  if (!search_ || largest < 4 * std::numeric_limits<float>::min()) return plain;

  unit_.resize(weights.size());
  const float inverse = 1 / largest;
  for (std::size_t i = 0; i < weights.size(); ++i) unit_[i] = weights[i] * inverse;
  Fit better = searched({unit_, energies}, {range.lowest * inverse, range.highest * inverse});
  better.scale = stored(better.scale * largest);
  const SquareSums plain_sums = measure(weights, energies, window(plain));
  const SquareSums better_sums = measure(weights, energies, window(better));
  const bool won = energies.empty() ? better_sums.error < plain_sums.error
                                    : better_sums.weighted_error < plain_sums.weighted_error;
  return won ? better : plain;
}

}  // namespace modelport::weights
