// The loops over one group of weights, written for compilers to turn into vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace modelport::weights {

/// What a scale makes of a weight: its quotient by the scale, rounded, between two integers.
struct Window {
  float scale = 1;  // may be negative, not zero
  float low = 0;
  float high = 0;
};

struct Range {
  float lowest = 0;
  float highest = 0;
  float largest() const { return -lowest > highest ? -lowest : highest; }
};

/// Of finite weights, at least one.
Range range_of(std::span<const float> weights);

/// Weights and what each counts; without energies all count alike.
struct WeightedGroup {
  std::span<const float> weights;
  std::span<const float> energies;
};

struct Moments {
  float mean = 0;
  float mean_square = 0;
};
/// Each column times its energy.
Moments moments_of(const WeightedGroup& group);

/// Several windows that are tried on a group in one pass.
constexpr std::size_t kTrials = 8;
struct Trials {
  std::array<float, kTrials> scale{};
  std::array<float, kTrials> low{};
  std::array<float, kTrials> high{};
};

/// Of rounded quotients q and what rounding took off, d, the sums of d * d, d * q and q * q, each
/// column times its energy. For these q the best scale is (1 + dq / qq) times the one that gave
/// them; the squared error is then dd - dq * dq / qq, in steps of the latter.
struct Correlations {
  std::array<float, kTrials> dd{};
  std::array<float, kTrials> dq{};
  std::array<float, kTrials> qq{};
};
Correlations correlate(const WeightedGroup& group, const Trials& trials);

/// Sums of squares. `weighted`: each column times its energy.
struct SquareSums {
  double error = 0;  // weight minus quantized weight
  double total = 0;  // weight
  double weighted_error = 0;
  double weighted_total = 0;
  SquareSums& operator+=(const SquareSums& other);
};
SquareSums measure(std::span<const float> weights, std::span<const float> energies,
                   const Window& window);
/// The same, and each quotient less `window.low` into `codes`.
SquareSums encode(std::span<const float> weights, std::span<const float> energies,
                  const Window& window, std::span<std::uint8_t> codes);

}  // namespace modelport::weights
