#include "weights/quantize/group_sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "weights/quantize/lanes.h"

namespace modelport::weights {
namespace {

constexpr std::size_t kBlock = 64;  // of a group, whose codes are narrowed to bytes together

/// In steps of the scale, so that squares neither overflow nor vanish.
template <bool kWeighted>
class StepSums {
 public:
  explicit StepSums(const Window& window)
      : inverse_(all(1 / window.scale)), low_(all(window.low)), high_(all(window.high)) {}

  /// Codes, counted from `low`.
  Floats add(Floats weights, Floats energies) {
    const Floats steps = weights * inverse_;
    const Floats q = rounded(clamped(steps, low_, high_));
    const Floats off = steps - q;
    error_ += off * off;
    total_ += steps * steps;
    if constexpr (kWeighted) {
      weighted_error_ += energies * (off * off);
      weighted_total_ += energies * (steps * steps);
    }
    return q - low_;
  }

  /// `codes` has room for as many vectors as it takes.
  void add_block(const float* weights, const float* energies, std::size_t count, float* codes) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      store(add(load(weights + i), kWeighted ? load(energies + i) : Floats{}), codes + i);
    }
    if (i == count) return;
    std::array<float, kLanes> last_weights{};  // beyond the last ones lies nothing
    std::array<float, kLanes> last_energies{};
    std::copy_n(weights + i, count - i, last_weights.begin());
    if constexpr (kWeighted) std::copy_n(energies + i, count - i, last_energies.begin());
    store(add(load(last_weights.data()), load(last_energies.data())), codes + i);
  }

  SquareSums sums(double scale) const {
    const double square = scale * scale;
    SquareSums sums{sum(error_) * square, sum(total_) * square};
    if constexpr (kWeighted) {
      sums.weighted_error = sum(weighted_error_) * square;
      sums.weighted_total = sum(weighted_total_) * square;
    }
    return sums;
  }

 private:
  Floats inverse_;
  Floats low_;
  Floats high_;
  Floats error_{};
  Floats total_{};
  Floats weighted_error_{};
  Floats weighted_total_{};
};

/// Codes into `codes`, unless that is null.
template <bool kWeighted>
SquareSums measure_group(std::span<const float> weights, const float* energies,
                         const Window& window, std::uint8_t* codes) {
  constexpr std::size_t kPiece = 1024;  // as many as floats sum well
  std::array<float, kBlock> block;
  SquareSums sums;
  for (std::size_t begin = 0; begin < weights.size(); begin += kPiece) {
    const std::size_t end = std::min(begin + kPiece, weights.size());
    StepSums<kWeighted> part(window);
    for (std::size_t i = begin; i < end; i += kBlock) {
      const std::size_t count = std::min(kBlock, end - i);
      part.add_block(weights.data() + i, kWeighted ? energies + i : nullptr, count, block.data());
      if (codes == nullptr) continue;
      for (std::size_t k = 0; k < count; ++k) {
        codes[i + k] = static_cast<std::uint8_t>(static_cast<std::int32_t>(block[k]));
      }
    }
    sums += part.sums(window.scale);
  }
  return sums;
}

template <bool kWeighted>
SquareSums encode_groups(std::span<const float> weights, const float* energies, std::size_t group,
                         std::span<const Window> windows, std::span<std::uint8_t> codes) {
  SquareSums sums;
  for (std::size_t g = 0; g < windows.size(); ++g) {
    const std::size_t begin = g * group;
    const auto part = weights.subspan(begin, std::min(group, weights.size() - begin));
    sums += measure_group<kWeighted>(part, kWeighted ? energies + begin : nullptr, windows[g],
                                     &codes[begin]);
  }
  return sums;
}

/// The codes of a group and nothing else, sixteen at a time.
class Encoder {
 public:
  static constexpr std::size_t kAtOnce = 4 * kLanes;

  explicit Encoder(const Window& window)
      : inverse_(all(1 / window.scale)),
        low_(all(window.low)),
        high_(all(window.high)),
        first_(std::bit_cast<Ints>(low_ + kToInteger)) {}

  void encode(std::span<const float> weights, std::uint8_t* codes) const {
    std::size_t i = 0;
    for (; i + kAtOnce <= weights.size(); i += kAtOnce) encode_some(weights.data() + i, codes + i);
    if (i == weights.size()) return;
    std::array<float, kAtOnce> last{};
    std::array<std::uint8_t, kAtOnce> last_codes;
    std::copy(weights.begin() + static_cast<std::ptrdiff_t>(i), weights.end(), last.begin());
    encode_some(last.data(), last_codes.data());
    std::copy_n(last_codes.begin(), weights.size() - i, codes + i);
  }

 private:
  void encode_some(const float* weights, std::uint8_t* codes) const {
    const Bytes some = last_bytes({counted(weights), counted(weights + kLanes),
                                   counted(weights + 2 * kLanes), counted(weights + 3 * kLanes)});
    std::memcpy(codes, &some, sizeof(some));
  }

  /// From `low`: an integer that was rounded by adding kToInteger is in the last bits.
  Ints counted(const float* weights) const {
    const Floats steps = clamped(load(weights) * inverse_, low_, high_);
    return std::bit_cast<Ints>(steps + kToInteger) - first_;
  }

  Floats inverse_;
  Floats low_;
  Floats high_;
  Ints first_;
};

}  // namespace

Range range_of(std::span<const float> weights) {
  const float* data = weights.data();
  const std::size_t count = weights.size();
  Floats low = all(data[0]);
  Floats high = low;
  Floats other_low = low;  // two at a time: a comparison waits for the one before it
  Floats other_high = low;
  std::size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    low = smaller(low, load(data + i));
    high = larger(high, load(data + i));
    other_low = smaller(other_low, load(data + i + kLanes));
    other_high = larger(other_high, load(data + i + kLanes));
  }
  for (; i < count; ++i) {
    low = smaller(low, all(data[i]));
    high = larger(high, all(data[i]));
  }
  return {folded(smaller(low, other_low), smaller), folded(larger(high, other_high), larger)};
}

SquareSums measure(std::span<const float> weights, std::span<const float> energies,
                   const Window& window) {
  return energies.empty() ? measure_group<false>(weights, nullptr, window, nullptr)
                          : measure_group<true>(weights, energies.data(), window, nullptr);
}

SquareSums encode(std::span<const float> weights, std::span<const float> energies,
                  std::size_t group, std::span<const Window> windows,
                  std::span<std::uint8_t> codes) {
  return energies.empty() ? encode_groups<false>(weights, nullptr, group, windows, codes)
                          : encode_groups<true>(weights, energies.data(), group, windows, codes);
}

SquareSums measure_codes(std::span<const float> weights, std::span<const float> energies,
                         std::size_t group, std::span<const Window> windows,
                         std::span<const std::uint8_t> codes) {
  SquareSums sums;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Window& window = windows[i / group];
    const double weight = weights[i];
    const double error = weight - window.scale * (static_cast<double>(codes[i]) + window.low);
    const double energy = energies.empty() ? 0 : energies[i];
    sums += {error * error, weight * weight, energy * error * error, energy * weight * weight};
  }
  return sums;
}

void encode_only(std::span<const float> weights, std::size_t group, std::span<const Window> windows,
                 std::span<std::uint8_t> codes) {
  for (std::size_t g = 0; g < windows.size(); ++g) {
    const std::size_t begin = g * group;
    const std::size_t length = std::min(group, weights.size() - begin);
    Encoder(windows[g]).encode(weights.subspan(begin, length), &codes[begin]);
  }
}

}  // namespace modelport::weights
