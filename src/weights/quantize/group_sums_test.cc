#include "weights/quantize/group_sums.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace modelport::weights {
namespace {

/// Some of them halfway between two codes, some beyond the last.
std::vector<float> drawn(std::size_t count, const Window& window, std::mt19937& random) {
  const int reach = static_cast<int>(window.high - window.low) + 4;
  std::uniform_int_distribution<int> halves(-2 * reach, 2 * reach);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = 0.5F * static_cast<float>(halves(random)) * window.scale;
  return weights;
}

TEST_CASE("codes that come alone are those that come with the error, for any length of a group") {
  std::mt19937 random(6);
  for (const Window window : {Window{0.25F, -8, 7}, Window{-0.25F, -8, 7}, Window{0.5F, -3, 12},
                              Window{0.125F, -128, 127}, Window{2, 0, 255}}) {
    for (std::size_t length = 1; length < 70; ++length) {
      const std::vector<float> weights = drawn(2 * length + length / 2 + 1, window, random);
      const std::vector<Window> windows(3, window);
      std::vector<std::uint8_t> alone(weights.size());
      std::vector<std::uint8_t> measured(weights.size());
      encode_only(weights, length, windows, alone);
      encode(weights, {}, length, windows, measured);
      CAPTURE(length);
      CHECK(alone == measured);
    }
  }
}

}  // namespace
}  // namespace modelport::weights
