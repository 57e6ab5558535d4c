#include "weights/quantize/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "weights/quantize/lanes.h"

namespace modelport::weights {
namespace {

/// Tried with normal, uniform and heavy-tailed weights in groups of 16 to 4096: the factor with the
/// least error lies below the narrowest in 98 of 100 groups. In a short group of 16 codes it is
/// near to 1 whatever the weights are, for to cut the largest one costs as much as all others gain.
/// Of 256 codes every factor has other roundings, and it pays to try many that are wider.
SearchPlan plan_for(const ScaleSearch::Codes& codes, const GroupBatch& groups) {
  const auto count = static_cast<float>(groups.length);
  SearchPlan plan{.length = groups.length, .weighted = groups.energies[0] != nullptr};
  if (codes.levels > 16) {
    plan.wider = 4;
    plan.wide_step = 0.006F;
    plan.narrowest = 1.01F + 2e-4F * count;
    plan.least_narrowest = 1.01F;
    plan.fewest_deviations = 3.4F;
    plan.rounds = groups.length > 256 ? 5 : 3;
  } else {  // about a zero point of its own a group has two ends
    plan.narrowest = 1.05F + 0.0144F * std::pow(codes.zero_points ? 2 * count : count, 0.6F);
    plan.wider = groups.length <= (codes.zero_points ? 32 : 16) ? 1 : 0;
    const float finest = codes.zero_points ? 0.02F : 0.04F;
    for (float step = (plan.narrowest - 1) / 3; step > finest; step /= 2) ++plan.rounds;
  }
  if (codes.levels <= 16 && !plan.weighted) plan.weight_bits = ~15;
  if (plan.weighted) {  // the largest weight may count nothing
    plan.narrowest = 1000;
    plan.rounds = 5;
  }
  return plan;
}

/// A square of four vectors turned about its diagonal.
void transpose(std::array<Floats, kLanes>& v) {
  const Floats low01 = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
  const Floats high01 = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const Floats low23 = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Floats high23 = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/// Some bits of the weights of four groups side by side, each row `stride` after the one before.
Ranges side_by_side(std::span<const float* const, kLanes> groups, std::size_t length,
                    std::size_t stride, std::int32_t bits, float* to) {
  const auto each = [&](std::size_t i) {
    return Floats{groups[0][i], groups[1][i], groups[2][i], groups[3][i]};
  };
  Ranges range{each(0), each(0)};
  Ranges other = range;  // two at a time: a comparison waits for the one before it
  std::size_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    std::array square{load(groups[0] + i), load(groups[1] + i), load(groups[2] + i),
                      load(groups[3] + i)};
    transpose(square);
    for (std::size_t k = 0; k < kLanes; ++k) store(only(bits, square[k]), to + (i + k) * stride);
    range.lowest = smaller(range.lowest, smaller(square[0], square[1]));
    range.highest = larger(range.highest, larger(square[0], square[1]));
    other.lowest = smaller(other.lowest, smaller(square[2], square[3]));
    other.highest = larger(other.highest, larger(square[2], square[3]));
  }
  for (; i < length; ++i) {
    const Floats last = each(i);
    store(only(bits, last), to + i * stride);
    range.lowest = smaller(range.lowest, last);
    range.highest = larger(range.highest, last);
  }
  return {smaller(range.lowest, other.lowest), larger(range.highest, other.highest)};
}

// One text for four lanes, which every processor has, and for eight. Its functions are made of
// single operations on lanes, and only what is exact is fused: both give the same numbers.
// Templates would not do, for a function is compiled for the processor that is named where its text
// stands.
namespace narrow {
#include "weights/quantize/search_lanes.inc"
}  // namespace narrow

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace wide {
constexpr std::size_t kLanes = 8;
#include "weights/quantize/lanes.inc"
#include "weights/quantize/search_lanes.inc"
}  // namespace wide
#pragma GCC pop_options
bool processor_is_wide() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#else
namespace wide = narrow;
bool processor_is_wide() { return false; }
#endif

}  // namespace

bool ScaleSearch::has_wide_lanes() { return processor_is_wide(); }

/// Weights and their ranges, or energies: the halves of a batch side by side, or one after the
/// other.
void ScaleSearch::arrange(const GroupBatch& groups, bool energies, BatchFits& fits) {
  std::vector<float>& to = energies ? energies_ : weights_;
  to.resize(groups.length * kBatch);
  const auto& from = energies ? groups.energies : groups.weights;
  for (std::size_t first = 0; first < kBatch; first += kLanes) {
    float* place = to.data() + (wide_ ? first : first * groups.length);
    const Ranges range = side_by_side(std::span(from).subspan(first).first<kLanes>(), groups.length,
                                      wide_ ? kBatch : kLanes, plan_.weight_bits, place);
    if (energies) continue;
    store(range.lowest, &fits.lowest[first]);
    store(range.highest, &fits.highest[first]);
  }
}

BatchFits ScaleSearch::run(const GroupBatch& groups) {
  const bool weighted = groups.energies[0] != nullptr;
  if (plan_.length != groups.length || plan_.weighted != weighted) plan_ = plan_for(codes_, groups);
  BatchFits fits;
  arrange(groups, false, fits);
  if (weighted) arrange(groups, true, fits);
  if (wide_) {
    wide::search(codes_, plan_, weights_.data(), weighted ? energies_.data() : nullptr, 0, fits);
    return fits;
  }
  for (std::size_t first = 0; first < kBatch; first += kLanes) {
    const std::size_t begin = first * groups.length;
    narrow::search(codes_, plan_, weights_.data() + begin,
                   weighted ? energies_.data() + begin : nullptr, first, fits);
  }
  return fits;
}

}  // namespace modelport::weights
