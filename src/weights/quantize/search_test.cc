#include "weights/quantize/search.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace modelport::weights {
namespace {

/// Some of ordinary size, and such as have to be brought to another unit.
std::vector<float> drawn_groups(std::size_t length, std::mt19937& random) {
  std::student_t_distribution<float> heavy(3);
  std::vector<float> weights(length * kBatch);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float unit = i / length == 2 ? 1e-30F : (i / length == 6 ? 1e30F : 1.0F);
    weights[i] = heavy(random) * unit;
  }
  return weights;
}

GroupBatch batch_of(const std::vector<float>& weights, const std::vector<float>& energies) {
  GroupBatch batch{.length = weights.size() / kBatch};
  for (std::size_t g = 0; g < kBatch; ++g) {
    batch.weights[g] = weights.data() + g * batch.length;
    batch.energies[g] = energies.empty() ? nullptr : energies.data() + g * batch.length;
  }
  return batch;
}

TEST_CASE("eight lanes at once find, bit for bit, what four find") {
  if (!ScaleSearch::has_wide_lanes()) return;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> positive(0.1F, 4);
  for (const std::size_t length : {3, 16, 32, 129}) {
    for (const int levels : {16, 256}) {
      for (const bool zero_points : {false, true}) {
        for (const bool weighted : {false, true}) {
          const std::vector<float> weights = drawn_groups(length, random);
          std::vector<float> energies(weighted ? weights.size() : 0);
          for (float& energy : energies) energy = positive(random);
          const GroupBatch batch = batch_of(weights, energies);
          const ScaleSearch::Codes codes{levels, zero_points, !zero_points};
          const BatchFits wide = ScaleSearch(codes, true).run(batch);
          const BatchFits narrow = ScaleSearch(codes, false).run(batch);
          CAPTURE(length);
          CAPTURE(levels);
          CHECK(wide.scale == narrow.scale);
          CHECK(wide.zero_point == narrow.zero_point);
          CHECK(wide.lowest == narrow.lowest);
          CHECK(wide.highest == narrow.highest);
        }
      }
    }
  }
}

}  // namespace
}  // namespace modelport::weights
