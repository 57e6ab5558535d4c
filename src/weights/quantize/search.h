// The scales of eight groups of weights at once, each the one with the least squared error of many
// that are tried.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace modelport::weights {

/// Groups of one length that are searched together: one in each lane of a vector, so that what is
/// done once a group is done for all of them in one instruction, and no sum has to be folded.
constexpr std::size_t kBatch = 8;
struct GroupBatch {
  std::array<const float*, kBatch> weights{};
  std::array<const float*, kBatch> energies{};  // what each weight counts; or null, and all alike
  std::size_t length = 0;
};

/// Of each group in a batch.
struct BatchFits {
  std::array<float, kBatch> scale{};
  std::array<int, kBatch> zero_point{};
  std::array<float, kBatch> lowest{};
  std::array<float, kBatch> highest{};
};

/// What is tried, as factors: how many times more steps there are to a weight than with the scale
/// that spans the range. Beyond 1 the largest weights are cut, and all others gain.
struct SearchPlan {
  std::size_t length = 0;  // of a group
  bool weighted = false;
  float wide_step = 0.055F;
  float narrowest = 1;  // of five: one below 1, then 1 itself and evenly on to this
  // It is nearer where codes would reach less than so many deviations, but not as near as this.
  float fewest_deviations = 2;
  float least_narrowest = 1.17F;
  int wider = 0;   // more pairs below 1
  int rounds = 0;  // pairs on either side of the best, each half as far from it as the last
  // Without its last four a weight has exact products with 16 codes, and the errors that are
  // compared change by less than a millionth.
  std::int32_t weight_bits = -1;
};

/// Searches one batch after the other; has memory of its own, so each thread needs one.
class ScaleSearch {
 public:
  struct Codes {
    int levels = 16;               // 2^bits
    bool zero_points = false;      // without them zero is the code `levels / 2`
    bool negative_scales = false;  // a layout takes them
  };
  /// Eight lanes at once where the processor has them; the results are the same.
  explicit ScaleSearch(const Codes& codes, bool wide = has_wide_lanes())
      : codes_(codes), wide_(wide) {}
  static bool has_wide_lanes();

  /// Weights are finite; of a group whose largest one has no finite inverse, the scale means
  /// nothing. At least one energy of a group is positive. For a scale that is stored as it is, the
  /// error is never larger than that of the scale which spans the range. What a group gets does not
  /// depend on the others.
  BatchFits run(const GroupBatch& batch);

 private:
  void arrange(const GroupBatch& groups, bool energies, BatchFits& fits);

  Codes codes_;
  bool wide_;
  SearchPlan plan_;
  std::vector<float> weights_;   // the groups side by side
  std::vector<float> energies_;  // the same of these
};

}  // namespace modelport::weights
