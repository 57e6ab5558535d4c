// Scale and zero point of a group of weights.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "weights/quantize/group_sums.h"
#include "weights/quantize/scheme.h"

namespace modelport::weights {

/// A weight is about scale * (code - zero_point), with codes from 0 to 2^bits - 1.
struct Fit {
  float scale = 1;
  int zero_point = 0;
  bool operator==(const Fit&) const = default;
};

/// Fits one group after the other; has memory of its own, so each thread needs one.
class GroupFitter {
 public:
  /// The scheme is one that quantized_form() accepts.
  explicit GroupFitter(const Scheme& scheme);

  /// `weights` are finite, at least one. `energies` are as many, at least one of them positive; or
  /// none, and all columns count alike. The scale is one that its dtype holds.
  Fit fit(std::span<const float> weights, std::span<const float> energies);

  Window window(const Fit& fit) const;

 private:
  /// kTrials spans (half of what all codes cover), from `first` on, each `ratio` times the last.
  struct Spans {
    float first = 1;
    float ratio = 1;
    float sign = 1;  // of the scale
  };
  /// Of the weights of a group.
  struct Bounds {
    float half_range = 1;
    float centre = 0;
    float mean = 0;
  };
  struct Best {
    float error = std::numeric_limits<float>::infinity();
    Fit fit;
    float span = 1;
    float sign = 1;
  };

  Fit from_range(const Range& range) const;
  Fit searched(const WeightedGroup& unit, const Range& range) const;
  /// Keeps the best of those tried before and now.
  void try_spans(const WeightedGroup& unit, const Bounds& bounds, const Spans& spans,
                 Best& best) const;
  int centred_zero_point(const Bounds& bounds, float span) const;
  float stored(float scale) const;

  int levels_;  // 2^bits
  bool zero_points_;
  bool negative_scales_;
  bool search_;
  Dtype scale_dtype_;
  std::vector<float> unit_;  // a group, its largest weight 1
};

}  // namespace modelport::weights
