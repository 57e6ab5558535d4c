#include "weights/quantize/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weights/quantize/lanes.h"

namespace modelport::weights {
namespace {

static_assert(kBatch == kLanes);

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
  if (plan.weighted) {  // the largest weight may count nothing
    plan.narrowest = 1000;
    plan.rounds = 5;
  }
  return plan;
}

/// Of each group.
struct Bounds {
  Floats inverse{};    // of the scale that spans the range
  Floats narrowest{};  // factor
  Floats centre{};     // of the range
  Floats mean{};
};

struct Ranges {
  Floats lowest;
  Floats highest;
};

/// A square of four vectors turned about its diagonal.
void transpose(std::array<Floats, kLanes>& v) {
  const Floats low01{v[0][0], v[1][0], v[0][1], v[1][1]};
  const Floats high01{v[0][2], v[1][2], v[0][3], v[1][3]};
  const Floats low23{v[2][0], v[3][0], v[2][1], v[3][1]};
  const Floats high23{v[2][2], v[3][2], v[2][3], v[3][3]};
  v[0] = Floats{low01[0], low01[1], low23[0], low23[1]};
  v[1] = Floats{low01[2], low01[3], low23[2], low23[3]};
  v[2] = Floats{high01[0], high01[1], high23[0], high23[1]};
  v[3] = Floats{high01[2], high01[3], high23[2], high23[3]};
}

Ranges side_by_side(const std::array<const float*, kBatch>& groups, std::size_t length, float* to) {
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
    for (std::size_t k = 0; k < kLanes; ++k) store(square[k], to + (i + k) * kLanes);
    range.lowest = smaller(range.lowest, smaller(square[0], square[1]));
    range.highest = larger(range.highest, larger(square[0], square[1]));
    other.lowest = smaller(other.lowest, smaller(square[2], square[3]));
    other.highest = larger(other.highest, larger(square[2], square[3]));
  }
  for (; i < length; ++i) {
    const Floats last = each(i);
    store(last, to + i * kLanes);
    range.lowest = smaller(range.lowest, last);
    range.highest = larger(range.highest, last);
  }
  return {smaller(range.lowest, other.lowest), larger(range.highest, other.highest)};
}

/// Weights of four groups, and what each counts.
struct Batch {
  const float* weights = nullptr;
  const float* energies = nullptr;
  std::size_t length = 0;
};

struct Moments {
  Floats mean{};
  Floats square{};
};

template <bool kWeighted>
Moments moments_of(const Batch& batch) {
  Floats first{};
  Floats square{};
  Floats total{};
  for (std::size_t i = 0; i < batch.length; ++i) {
    const Floats weight = load(batch.weights + i * kLanes);
    const Floats energy = kWeighted ? load(batch.energies + i * kLanes) : all(1);
    first += energy * weight;
    square += energy * weight * weight;
    total += energy;
  }
  return {first / total, square / total};
}

/// Of rounded quotients q, and d, which is what rounding took off them or, where 16 codes leave so
/// large an error that it is seen in the sum of all, the weight itself.
struct Sums {
  Floats dd{};
  Floats dq{};
  Floats qq{};
};

struct Trial {
  Floats factor{};
  Floats inverse{};  // of the scale
  Floats zero{};
};

/// Several trials in one pass: their sums do not wait for each other.
template <bool kWeighted, bool kFine, std::size_t kCount>
std::array<Sums, kCount> sums_of(const Batch& batch, const Trial* trials, Floats highest) {
  std::array<Sums, kCount> sums{};
  for (std::size_t i = 0; i < batch.length; ++i) {
    const Floats weight = load(batch.weights + i * kLanes);
    const Floats energy = kWeighted ? load(batch.energies + i * kLanes) : Floats{};
    for (std::size_t t = 0; t < kCount; ++t) {
      const Floats steps = weight * trials[t].inverse;
      const Floats q = rounded(clamped(steps, -trials[t].zero, highest - trials[t].zero));
      const Floats d = kFine ? steps - q : weight;
      const Floats counted = kWeighted ? energy * q : q;
      sums[t].dq += counted * d;
      sums[t].qq += counted * q;
      if (kFine) sums[t].dd += (kWeighted ? energy * d : d) * d;
    }
  }
  return sums;
}

class Trials {
 public:
  Trials(const ScaleSearch::Codes& codes, const Batch& batch, const Bounds& bounds)
      : codes_(codes),
        batch_(batch),
        bounds_(bounds),
        fine_(codes.levels > 16),
        steps_(static_cast<float>(codes.levels - 1)) {}

  /// Keeps the best of those tried before and now, each with the scale that is best for the codes
  /// that it gives.
  template <std::size_t kCount>
  void attempt(const std::array<Floats, kCount>& factors) {
    std::array<Trial, kCount> trials;
    for (std::size_t t = 0; t < kCount; ++t) {
      const Floats factor = factors[t];
      const Floats middle = all(steps_ / 2 + 0.5F);
      trials[t] = {factor, bounds_.inverse * factor,
                   codes_.zero_points ? centred_zero_point(factor) : middle};
    }
    const auto sums =
        batch_.energies == nullptr ? sums_by_codes<false>(trials) : sums_by_codes<true>(trials);
    for (std::size_t t = 0; t < kCount; ++t) keep(trials[t], sums[t]);
  }

  Floats best_factor() const { return best_.factor; }

  void store_best(BatchFits& fits) const {
    store(scale_, fits.scale.data());
    for (std::size_t i = 0; i < kLanes; ++i) {
      fits.zero_point[i] = static_cast<int>(best_.zero[i]);
    }
  }

 private:
  template <bool kWeighted, std::size_t kCount>
  std::array<Sums, kCount> sums_by_codes(const std::array<Trial, kCount>& trials) const {
    return fine_ ? sums_of<kWeighted, true, kCount>(batch_, trials.data(), all(steps_))
                 : sums_of<kWeighted, false, kCount>(batch_, trials.data(), all(steps_));
  }

  void keep(const Trial& trial, const Sums& sums) {
    // Codes that are all zero have no scale, and no part in any weight.
    const Floats ratio = sums.dq / larger(sums.qq, all(std::numeric_limits<float>::min()));
    Floats scale = ratio;
    Floats error = -sums.dq * ratio;
    if (fine_) {
      scale = (1 + ratio) / trial.inverse;
      error = (sums.dd + error) / (trial.inverse * trial.inverse);
    }
    const auto better = error < error_;
    error_ = better ? error : error_;
    scale_ = better ? scale : scale_;
    best_.zero = better ? trial.zero : best_.zero;
    best_.factor = better ? trial.factor : best_.factor;
  }

  /// Where the middle of the codes lies: for codes that cover the range in the middle of that, and
  /// the less they cover, the nearer to the mean of the weights.
  Floats centred_zero_point(Floats factor) const {
    const Floats part = 1 / larger(factor, all(1));
    const Floats centre = bounds_.mean + (bounds_.centre - bounds_.mean) * part;
    const Floats zero = steps_ / 2 - centre * bounds_.inverse * factor;
    return clamped(rounded(zero), Floats{}, all(steps_));
  }

  const ScaleSearch::Codes& codes_;
  const Batch& batch_;
  const Bounds& bounds_;
  bool fine_;
  float steps_;
  Floats error_ = all(std::numeric_limits<float>::max());
  Floats scale_ = all(1);
  Trial best_;
};

/// So that squares of sums of weights neither overflow nor vanish: 1, and for very large and very
/// small ones what brings the largest to 1.
Floats unit_of(Floats largest) {
  const auto usual = (largest > 0x1p-32F) & (largest < 0x1p32F);
  return usual ? all(1) : 1 / larger(largest, all(4 * std::numeric_limits<float>::min()));
}

Bounds bounds_of(const ScaleSearch::Codes& codes, const SearchPlan& plan, const Batch& batch,
                 const Ranges& range) {
  const auto steps = static_cast<float>(codes.levels - 1);
  Bounds bounds;
  Floats half_range = larger(range.highest, -range.lowest);
  if (codes.zero_points) {  // zero is among the codes
    const Floats lowest = smaller(range.lowest, Floats{});
    const Floats highest = larger(range.highest, Floats{});
    half_range = (highest - lowest) / 2;
    bounds.centre = (highest + lowest) / 2;
  }
  half_range = larger(half_range, all(std::numeric_limits<float>::min()));
  bounds.inverse = steps / 2 / half_range;
  // There is one code more below zero than above it, and the largest weight may have that one.
  if (codes.negative_scales && !codes.zero_points) {
    bounds.inverse = range.highest > -range.lowest ? -bounds.inverse : bounds.inverse;
  }
  bounds.narrowest = all(plan.narrowest);
  if (!codes.zero_points && plan.narrowest <= plan.least_narrowest) return bounds;
  const Moments moments =
      batch.energies == nullptr ? moments_of<false>(batch) : moments_of<true>(batch);
  bounds.mean = moments.mean;
  Floats variance = moments.square;
  if (codes.zero_points) variance -= moments.mean * moments.mean;
  Floats reach{};
  for (std::size_t i = 0; i < kLanes; ++i) {
    reach[i] = half_range[i] / (std::sqrt(std::max(variance[i], 0.0F)) * plan.fewest_deviations);
  }
  bounds.narrowest = clamped(reach, all(plan.least_narrowest), bounds.narrowest);
  return bounds;
}

void search(const ScaleSearch::Codes& codes, const SearchPlan& plan, const Batch& batch,
            const Bounds& bounds, BatchFits& fits) {
  Trials trials(codes, batch, bounds);
  Floats step = (bounds.narrowest - 1) / 3;
  trials.attempt<5>({all(1 - plan.wide_step), all(1), 1 + step, 1 + 2 * step, 1 + 3 * step});
  float wide = 1 - plan.wide_step;
  for (int pair = 0; pair < plan.wider; ++pair) {
    trials.attempt<2>({all(wide - plan.wide_step), all(wide - 2 * plan.wide_step)});
    wide -= 2 * plan.wide_step;
  }
  for (int round = 0; round < plan.rounds; ++round) {
    step /= 2;
    const Floats best = trials.best_factor();
    trials.attempt<2>({best - step, best + step});
  }
  trials.store_best(fits);
}

}  // namespace

BatchFits ScaleSearch::run(const GroupBatch& groups) {
  const bool weighted = groups.energies[0] != nullptr;
  if (plan_.length != groups.length || plan_.weighted != weighted) plan_ = plan_for(codes_, groups);
  weights_.resize(groups.length * kLanes);
  Batch batch{weights_.data(), nullptr, groups.length};
  Ranges range = side_by_side(groups.weights, groups.length, weights_.data());
  if (weighted) {
    energies_.resize(groups.length * kLanes);
    side_by_side(groups.energies, groups.length, energies_.data());
    batch.energies = energies_.data();
  }
  BatchFits fits;
  store(range.lowest, fits.lowest.data());
  store(range.highest, fits.highest.data());
  const Floats unit = unit_of(larger(range.highest, -range.lowest));
  if (folded(unit, smaller) != 1 || folded(unit, larger) != 1) {
    range = {range.lowest * unit, range.highest * unit};
    for (std::size_t i = 0; i < groups.length; ++i) {
      store(load(&weights_[i * kLanes]) * unit, &weights_[i * kLanes]);
    }
  }
  search(codes_, plan_, batch, bounds_of(codes_, plan_, batch, range), fits);
  store(load(fits.scale.data()) / unit, fits.scale.data());
  return fits;
}

}  // namespace modelport::weights
