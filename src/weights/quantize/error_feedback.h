// Rounding in which later columns make up for the errors of earlier ones, as far as the inputs of
// the product let them (GPTQ).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weights/quantize/group_sums.h"

namespace modelport::weights {

/// What is known of the inputs of a product, from calibration: one row of numbers for each column
/// of its weight. The memory is its maker's, or that of `keep_alive`.
struct InputFacts {
  std::span<const float> energies;       // mean square of each column's input
  std::span<const std::uint32_t> order;  // columns as they are rounded, each one once
  /// [columns, columns], row by row, in that order: the upper factor of the inverse of the mean of
  /// inputs' outer products, `inverse = transpose(upper) * upper`. What is below the diagonal is
  /// not read.
  std::span<const float> upper;
  std::shared_ptr<const void> keep_alive;
};

/// Rounds rows of a weight; has memory of its own, so each thread needs one.
class ErrorFeedback {
 public:
  /// Whole rows, one after the other, with a window for each group of each row; the codes of row
  /// by row into `codes`. What becomes of a row does not depend on the others.
  void round(const InputFacts& inputs, std::span<const float> weights, std::size_t group,
             std::span<const Window> windows, std::span<std::uint8_t> codes);

 private:
  void round_block(const InputFacts& inputs, std::size_t begin, std::size_t end);
  void carry(const InputFacts& inputs, std::size_t begin, std::size_t end);

  std::size_t rows_ = 0, columns_ = 0, group_ = 0, groups_ = 0;
  std::span<const Window> windows_;
  std::span<std::uint8_t> codes_;
  std::vector<float> left_;    // weights in the order of rounding, with the errors of earlier ones
  std::vector<float> errors_;  // of the columns of a block, row by row
};

}  // namespace modelport::weights
