#include "weights/quantize/error_feedback.h"

#include <doctest/doctest.h>

#include <numeric>

#include "weights/quantize/correlated_inputs.h"
#include "weights/quantize/quantized_values.h"

namespace modelport::weights {
namespace {

constexpr std::size_t kRows = 5, kColumns = 75, kGroup = 16;  // no whole number of groups or blocks

/// One for each group of each row, wide enough for weights of normal_values().
std::vector<Window> windows() {
  std::vector<Window> made(kRows * ((kColumns + kGroup - 1) / kGroup));
  for (std::size_t i = 0; i < made.size(); ++i) {
    const float scale = 0.007F + 0.0005F * static_cast<float>(i % 5);
    made[i] = {i % 3 == 0 ? -scale : scale, -8, 7};
  }
  return made;
}

std::vector<std::uint8_t> nearest(const std::vector<float>& weights) {
  const std::vector<Window> all = windows();
  const std::size_t groups = all.size() / kRows;
  std::vector<std::uint8_t> codes(weights.size());
  for (std::size_t row = 0; row < kRows; ++row)
    encode_only(std::span(weights).subspan(row * kColumns, kColumns), kGroup,
                std::span(all).subspan(row * groups, groups),
                std::span(codes).subspan(row * kColumns, kColumns));
  return codes;
}

std::vector<std::uint8_t> fed_back(const std::vector<float>& weights, const InputFacts& inputs) {
  std::vector<std::uint8_t> codes(weights.size());
  ErrorFeedback().round(inputs, weights, kGroup, windows(), codes);
  return codes;
}

/// Sum of squares of what the codes change in the product with these inputs.
double output_error(const std::vector<float>& weights, const std::vector<std::uint8_t>& codes,
                    const Matrix& inputs) {
  const std::vector<Window> all = windows();
  const std::size_t groups = all.size() / kRows;
  double error = 0;
  for (std::size_t row = 0; row < kRows; ++row) {
    for (const auto& input : inputs) {
      double sum = 0;
      for (std::size_t k = 0; k < kColumns; ++k) {
        const Window& window = all[row * groups + k / kGroup];
        const std::size_t i = row * kColumns + k;
        sum += input[k] * (weights[i] - window.scale * (codes[i] + window.low));
      }
      error += sum * sum;
    }
  }
  return error;
}

TEST_CASE("inputs that have nothing in common leave every weight at its nearest code") {
  const std::vector<float> weights = normal_values(kRows * kColumns, 1);
  const std::vector<float> energies(kColumns, 1.0F);
  std::vector<std::uint32_t> order(kColumns);
  std::iota(order.rbegin(), order.rend(), 0U);
  std::vector<float> upper(kColumns * kColumns);
  for (std::size_t i = 0; i < kColumns; ++i) upper[i * kColumns + i] = 0.5F;
  CHECK(fed_back(weights, {energies, order, upper, nullptr}) == nearest(weights));
}

TEST_CASE("the product with inputs that have much in common changes a quarter as much") {
  const std::vector<float> weights = normal_values(kRows * kColumns, 2);
  const CorrelatedInputs inputs(400, kColumns);
  const double carried = output_error(weights, fed_back(weights, inputs.facts()), inputs.rows);
  CHECK(carried < 0.25 * output_error(weights, nearest(weights), inputs.rows));
}

TEST_CASE("each column is the nearest to what earlier errors made of it") {
  const std::vector<float> weights = normal_values(kRows * kColumns, 3);
  const CorrelatedInputs inputs(400, kColumns);
  const std::vector<std::uint8_t> codes = fed_back(weights, inputs.facts());
  const std::vector<Window> all = windows();
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<double> left(kColumns);
    for (std::size_t i = 0; i < kColumns; ++i) left[i] = weights[row * kColumns + inputs.order[i]];
    for (std::size_t i = 0; i < kColumns; ++i) {
      const Window& window = all[row * (all.size() / kRows) + inputs.order[i] / kGroup];
      const double steps = codes[row * kColumns + inputs.order[i]] + window.low;
      const double wanted = left[i] / window.scale;
      CHECK(std::abs(std::clamp<double>(wanted, window.low, window.high) - steps) < 0.501);
      const double error = (left[i] - window.scale * steps) / inputs.upper[i * kColumns + i];
      for (std::size_t k = i + 1; k < kColumns; ++k)
        left[k] -= error * inputs.upper[i * kColumns + k];
    }
  }
}

TEST_CASE("a row's codes do not depend on the rows that it is rounded with") {
  const std::vector<float> weights = normal_values(kRows * kColumns, 4);
  const CorrelatedInputs inputs(400, kColumns);
  const std::vector<std::uint8_t> together = fed_back(weights, inputs.facts());
  const std::vector<Window> all = windows();
  const std::size_t groups = all.size() / kRows;
  ErrorFeedback feedback;
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<std::uint8_t> alone(kColumns);
    feedback.round(inputs.facts(), std::span(weights).subspan(row * kColumns, kColumns), kGroup,
                   std::span(all).subspan(row * groups, groups), alone);
    CHECK(std::equal(alone.begin(), alone.end(),
                     together.begin() + static_cast<std::ptrdiff_t>(row * kColumns)));
  }
}

}  // namespace
}  // namespace modelport::weights
