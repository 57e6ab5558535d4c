#include "weights/quantize/group_sums.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace modelport::weights {
namespace {

// Vectors of gcc and clang: both keep them in registers on every processor, as neither does with
// arrays of sums. A compiler may not reorder a plain sum of floats.
constexpr std::size_t kWidth = 4;
using Floats = float __attribute__((vector_size(kWidth * sizeof(float))));
using Integers = std::int32_t __attribute__((vector_size(kWidth * sizeof(float))));

Floats load(const float* from) {
  Floats loaded;
  std::memcpy(&loaded, from, sizeof(loaded));
  return loaded;
}

Floats all(float value) { return Floats{value, value, value, value}; }

/// To the nearest integer, ties to even, of numbers far below 2^22: the addition leaves no bits for
/// a fraction. std::nearbyint is no vector instruction of plain x86_64.
template <class Number>
Number rounded(Number value) {
  constexpr float kShift = 12582912.0F;  // 1.5 * 2^23
  return (value + kShift) - kShift;
}

template <class Number>
Number larger(Number a, Number b) {
  return a > b ? a : b;
}
template <class Number>
Number smaller(Number a, Number b) {
  return a < b ? a : b;
}
template <class Number>
Number clamped(Number value, Number low, Number high) {
  return smaller(larger(value, low), high);
}

/// Two halves, then two quarters, without a branch: which one is larger nobody can predict.
template <class Combine>
float folded(Floats a, const Combine& combine) {
  a = combine(a, Floats{a[2], a[3], a[0], a[1]});
  a = combine(a, Floats{a[1], a[0], a[3], a[2]});
  return a[0];
}

float sum(Floats a) {
  return folded(a, [](Floats x, Floats y) { return x + y; });
}

template <bool kWeighted>
Moments moments_of_group(const WeightedGroup& group) {
  const std::size_t count = group.weights.size();
  const std::size_t in_vectors = count - count % kWidth;
  Floats firsts{};
  Floats squares{};
  Floats energies{};
  for (std::size_t i = 0; i < in_vectors; i += kWidth) {
    const Floats weight = load(group.weights.data() + i);
    const Floats energy = kWeighted ? load(group.energies.data() + i) : all(1);
    firsts += energy * weight;
    squares += energy * weight * weight;
    energies += energy;
  }
  float first = sum(firsts);
  float square = sum(squares);
  float total = sum(energies);
  for (std::size_t i = in_vectors; i < count; ++i) {
    const float energy = kWeighted ? group.energies[i] : 1;
    first += energy * group.weights[i];
    square += energy * group.weights[i] * group.weights[i];
    total += energy;
  }
  return {first / total, square / total};
}

/// Four trials. Trials are the lanes: nothing is left to sum at the end of a group, however short.
template <bool kWeighted>
class TrialSums {
 public:
  TrialSums(const Trials& trials, std::size_t first)
      : inverse_(1 / load(trials.scale.data() + first)),
        low_(load(trials.low.data() + first)),
        high_(load(trials.high.data() + first)) {}

  void add(Floats weight, Floats energy) {
    const Floats steps = weight * inverse_;
    const Floats q = rounded(clamped(steps, low_, high_));
    const Floats d = steps - q;
    const Floats counted = kWeighted ? energy * q : q;
    dd_ += (kWeighted ? energy * d : d) * d;
    dq_ += counted * d;
    qq_ += counted * q;
  }

  void store(Correlations& sums, std::size_t first) const {
    std::memcpy(sums.dd.data() + first, &dd_, sizeof(dd_));
    std::memcpy(sums.dq.data() + first, &dq_, sizeof(dq_));
    std::memcpy(sums.qq.data() + first, &qq_, sizeof(qq_));
  }

 private:
  Floats inverse_;
  Floats low_;
  Floats high_;
  Floats dd_{};
  Floats dq_{};
  Floats qq_{};
};

template <bool kWeighted>
Correlations correlate_group(const WeightedGroup& group, const Trials& trials) {
  static_assert(kTrials == 2 * kWidth);
  TrialSums<kWeighted> first(trials, 0);
  TrialSums<kWeighted> second(trials, kWidth);
  for (std::size_t i = 0; i < group.weights.size(); ++i) {
    const Floats weight = all(group.weights[i]);
    const Floats energy = kWeighted ? all(group.energies[i]) : Floats{};
    first.add(weight, energy);
    second.add(weight, energy);
  }
  Correlations sums;
  first.store(sums, 0);
  second.store(sums, kWidth);
  return sums;
}

void store_codes(Floats codes, std::uint8_t* to) {
  using Bytes = std::uint8_t __attribute__((vector_size(kWidth)));
  const auto bytes = __builtin_convertvector(__builtin_convertvector(codes, Integers), Bytes);
  std::memcpy(to, &bytes, sizeof(bytes));
}

/// In steps of the scale, so that squares neither overflow nor vanish.
template <bool kWeighted, bool kCodes>
class StepSums {
 public:
  explicit StepSums(const Window& window)
      : inverse_(1 / window.scale), low_(window.low), high_(window.high) {}

  void add_four(const float* weights, const float* energies, std::uint8_t* codes) {
    const Floats steps = load(weights) * all(inverse_);
    const Floats q = rounded(clamped(steps, all(low_), all(high_)));
    const Floats off = (steps - q) * (steps - q);
    error_ += off;
    total_ += steps * steps;
    if constexpr (kWeighted) {
      weighted_error_ += load(energies) * off;
      weighted_total_ += load(energies) * (steps * steps);
    }
    if constexpr (kCodes) store_codes(q - all(low_), codes);
  }

  /// The last ones: beyond them lies nothing.
  void add_fewer(const float* weights, const float* energies, std::uint8_t* codes,
                 std::size_t count) {
    std::array<float, kWidth> four_weights{};
    std::array<float, kWidth> four_energies{};
    std::array<std::uint8_t, kWidth> four_codes{};
    std::copy_n(weights, count, four_weights.begin());
    if constexpr (kWeighted) std::copy_n(energies, count, four_energies.begin());
    add_four(four_weights.data(), four_energies.data(), four_codes.data());
    if constexpr (kCodes) std::copy_n(four_codes.begin(), count, codes);
  }

  SquareSums sums() const {
    return {sum(error_), sum(total_), sum(weighted_error_), sum(weighted_total_)};
  }

 private:
  float inverse_;
  float low_;
  float high_;
  Floats error_{};
  Floats total_{};
  Floats weighted_error_{};
  Floats weighted_total_{};
};

template <bool kWeighted, bool kCodes>
SquareSums measure_group(std::span<const float> weights, const float* energies,
                         const Window& window, std::uint8_t* codes) {
  constexpr std::size_t kPiece = 1024;  // as many as floats sum well
  SquareSums sums;
  for (std::size_t begin = 0; begin < weights.size(); begin += kPiece) {
    const std::size_t end = std::min(begin + kPiece, weights.size());
    StepSums<kWeighted, kCodes> part(window);
    const auto from = [&](auto* start, std::size_t i) {
      return start == nullptr ? start : start + i;
    };
    std::size_t i = begin;
    for (; i + kWidth <= end; i += kWidth) {
      part.add_four(weights.data() + i, from(energies, i), from(codes, i));
    }
    if (i < end) part.add_fewer(weights.data() + i, from(energies, i), from(codes, i), end - i);
    sums += part.sums();
  }
  const double square = static_cast<double>(window.scale) * static_cast<double>(window.scale);
  return {sums.error * square, sums.total * square, sums.weighted_error * square,
          sums.weighted_total * square};
}

template <bool kCodes>
SquareSums measure_either(std::span<const float> weights, std::span<const float> energies,
                          const Window& window, std::uint8_t* codes) {
  return energies.empty() ? measure_group<false, kCodes>(weights, nullptr, window, codes)
                          : measure_group<true, kCodes>(weights, energies.data(), window, codes);
}

}  // namespace

SquareSums& SquareSums::operator+=(const SquareSums& other) {
  error += other.error;
  total += other.total;
  weighted_error += other.weighted_error;
  weighted_total += other.weighted_total;
  return *this;
}

Range range_of(std::span<const float> weights) {
  const float* data = weights.data();
  const std::size_t count = weights.size();
  Floats low = all(data[0]);
  Floats high = low;
  Floats other_low = low;  // two at a time: a comparison waits for the one before it
  Floats other_high = low;
  std::size_t i = 0;
  for (; i + 2 * kWidth <= count; i += 2 * kWidth) {
    low = smaller(low, load(data + i));
    high = larger(high, load(data + i));
    other_low = smaller(other_low, load(data + i + kWidth));
    other_high = larger(other_high, load(data + i + kWidth));
  }
  for (; i < count; ++i) {
    low = smaller(low, all(data[i]));
    high = larger(high, all(data[i]));
  }
  return {folded(smaller(low, other_low), smaller<Floats>),
          folded(larger(high, other_high), larger<Floats>)};
}

Moments moments_of(const WeightedGroup& group) {
  return group.energies.empty() ? moments_of_group<false>(group) : moments_of_group<true>(group);
}

Correlations correlate(const WeightedGroup& group, const Trials& trials) {
  return group.energies.empty() ? correlate_group<false>(group, trials)
                                : correlate_group<true>(group, trials);
}

SquareSums measure(std::span<const float> weights, std::span<const float> energies,
                   const Window& window) {
  return measure_either<false>(weights, energies, window, nullptr);
}

SquareSums encode(std::span<const float> weights, std::span<const float> energies,
                  const Window& window, std::span<std::uint8_t> codes) {
  return measure_either<true>(weights, energies, window, codes.data());
}

}  // namespace modelport::weights
