#include "weights/quantize/error_feedback.h"

#include <algorithm>
#include <cmath>

namespace modelport::weights {
namespace {

constexpr std::size_t kBlock = 32;  // columns whose errors are carried on together
constexpr std::size_t kRows = 2;    // that share what was loaded of the factor
constexpr std::size_t kWide = 16;   // columns whose sums stay in registers

/// left[row][k] -= sum over i of errors[row][i] * upper[i][k], for a few rows and columns.
template <std::size_t kCount>
void subtract(const float* upper, std::size_t stride, const float* errors, std::size_t length,
              float* left) {
  float sums[kCount][kWide];
  for (std::size_t row = 0; row < kCount; ++row)
    for (std::size_t k = 0; k < kWide; ++k) sums[row][k] = left[row * stride + k];
  for (std::size_t i = 0; i < length; ++i)
    for (std::size_t row = 0; row < kCount; ++row)
      for (std::size_t k = 0; k < kWide; ++k)
        sums[row][k] -= errors[row * kBlock + i] * upper[i * stride + k];
  for (std::size_t row = 0; row < kCount; ++row)
    for (std::size_t k = 0; k < kWide; ++k) left[row * stride + k] = sums[row][k];
}

}  // namespace

void ErrorFeedback::round(const InputFacts& inputs, std::span<const float> weights,
                          std::size_t group, std::span<const Window> windows,
                          std::span<std::uint8_t> codes) {
  columns_ = inputs.order.size();
  rows_ = weights.size() / columns_;
  group_ = group;
  groups_ = windows.size() / rows_;
  windows_ = windows;
  codes_ = codes;
  left_.resize(weights.size());
  errors_.assign(rows_ * kBlock, 0.0F);
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t k = 0; k < columns_; ++k)
      left_[row * columns_ + k] = weights[row * columns_ + inputs.order[k]];
  for (std::size_t begin = 0; begin < columns_; begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, columns_);
    round_block(inputs, begin, end);
    carry(inputs, begin, end);
  }
}

/// One column after the other; within the block each error is carried on at once.
void ErrorFeedback::round_block(const InputFacts& inputs, std::size_t begin, std::size_t end) {
  for (std::size_t row = 0; row < rows_; ++row) {
    float* left = left_.data() + row * columns_;
    float* errors = errors_.data() + row * kBlock;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t column = inputs.order[i];
      const Window& window = windows_[row * groups_ + column / group_];
      const float steps =
          std::clamp(std::nearbyint(left[i] * (1 / window.scale)), window.low, window.high);
      codes_[row * columns_ + column] =
          static_cast<std::uint8_t>(static_cast<std::int32_t>(steps - window.low));
      const float* upper = inputs.upper.data() + i * columns_;
      const float error = (left[i] - window.scale * steps) / upper[i];
      errors[i - begin] = error;
      for (std::size_t k = i + 1; k < end; ++k) left[k] -= error * upper[k];
    }
  }
}

/// The errors of a block to all columns after it.
void ErrorFeedback::carry(const InputFacts& inputs, std::size_t begin, std::size_t end) {
  const float* upper = inputs.upper.data() + begin * columns_;
  const std::size_t length = end - begin;
  const std::size_t whole = end + (columns_ - end) / kWide * kWide;
  for (std::size_t k = end; k < whole; k += kWide) {
    std::size_t row = 0;
    for (; row + kRows <= rows_; row += kRows)
      subtract<kRows>(upper + k, columns_, &errors_[row * kBlock], length,
                      &left_[row * columns_ + k]);
    for (; row < rows_; ++row)
      subtract<1>(upper + k, columns_, &errors_[row * kBlock], length, &left_[row * columns_ + k]);
  }
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t k = whole; k < columns_; ++k)
      for (std::size_t i = 0; i < length; ++i)
        left_[row * columns_ + k] -= errors_[row * kBlock + i] * upper[i * columns_ + k];
}

}  // namespace modelport::weights
