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

/// Sums of squares. `weighted`: each column times its energy.
struct SquareSums {
  double error = 0;  // weight minus quantized weight
  double total = 0;  // weight
  double weighted_error = 0;
  double weighted_total = 0;
  SquareSums& operator+=(const SquareSums& other) {
    error += other.error;
    total += other.total;
    weighted_error += other.weighted_error;
    weighted_total += other.weighted_total;
    return *this;
  }
};
SquareSums measure(std::span<const float> weights, std::span<const float> energies,
                   const Window& window);
/// The same of a row of groups, each with its window, the last one as long as what is left; and
/// each quotient less `low` of its window into `codes`.
SquareSums encode(std::span<const float> weights, std::span<const float> energies,
                  std::size_t group, std::span<const Window> windows,
                  std::span<std::uint8_t> codes);
/// The same of codes that are there.
SquareSums measure_codes(std::span<const float> weights, std::span<const float> energies,
                         std::size_t group, std::span<const Window> windows,
                         std::span<const std::uint8_t> codes);
/// The codes alone, which are the same.
void encode_only(std::span<const float> weights, std::size_t group, std::span<const Window> windows,
                 std::span<std::uint8_t> codes);

}  // namespace modelport::weights
