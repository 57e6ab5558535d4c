// Scales and zero points of groups of weights.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "weights/quantize/group_sums.h"
#include "weights/quantize/scheme.h"
#include "weights/quantize/search.h"

namespace modelport::weights {

/// A weight is about scale * (code - zero_point), with codes from 0 to 2^bits - 1.
struct Fit {
  float scale = 1;
  int zero_point = 0;
  bool operator==(const Fit&) const = default;
};

/// Rows of weights, one after the other, cut into groups: the last one of a row may be shorter.
struct GroupedRows {
  std::span<const float> weights;  // finite
  std::size_t columns = 0;
  std::size_t group = 0;
  /// What each column counts, zero or more; or none, and all count alike, as they do in a group
  /// whose energies are all zero.
  std::span<const float> energies;

  std::size_t rows() const { return weights.size() / columns; }
  std::size_t groups_per_row() const { return (columns + group - 1) / group; }
};

/// Fits one piece of rows after the other; has memory of its own, so each thread needs one.
class GroupFitter {
 public:
  /// The scheme is one that quantized_form() accepts.
  explicit GroupFitter(const Scheme& scheme);

  /// One fit for each group. Scales are ones that their dtype holds.
  void fit(const GroupedRows& rows, std::span<Fit> fits);

  Window window(const Fit& fit) const {
    return {fit.scale, static_cast<float>(-fit.zero_point),
            static_cast<float>(levels_ - 1 - fit.zero_point)};
  }

 private:
  Fit from_range(const Range& range) const;
  std::span<const float> energies_of(const GroupedRows& rows, std::size_t begin,
                                     std::size_t length);
  void add(std::span<const float> weights, std::span<const float> energies, Fit* fit);
  void search();
  Fit better_of(std::size_t place, const Range& range, Fit found) const;
  float stored(float scale) const;

  int levels_;  // 2^bits
  bool zero_points_;
  bool by_search_;
  Dtype scale_dtype_;
  ScaleSearch search_;
  GroupBatch batch_;
  std::array<Fit*, kBatch> batch_fits_{};
  std::size_t in_batch_ = 0;
  std::vector<float> ones_;
};

}  // namespace modelport::weights
