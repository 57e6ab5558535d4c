// For tests: inputs of a product that have much in common, and what is known of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "weights/quantize/error_feedback.h"

namespace modelport::weights {

using Matrix = std::vector<std::vector<double>>;

/// By elimination, of a matrix that has one.
inline Matrix inverse(Matrix a) {
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i].resize(2 * n);
    a[i][n + i] = 1;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (double& x : a[i]) x /= pivot;
    for (std::size_t j = 0; j < n; ++j) {
      const double factor = j == i ? 0 : a[j][i];
      for (std::size_t k = 0; k < 2 * n; ++k) a[j][k] -= factor * a[i][k];
    }
  }
  for (auto& row : a) row.erase(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n));
  return a;
}

/// U, upper, with a = transpose(U) * U.
inline Matrix upper_factor(const Matrix& a) {
  const std::size_t n = a.size();
  Matrix u(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = i; k < n; ++k) {
      double left = a[i][k];
      for (std::size_t j = 0; j < i; ++j) left -= u[j][i] * u[j][k];
      u[i][k] = k == i ? std::sqrt(left) : left / u[i][i];
    }
  }
  return u;
}

struct CorrelatedInputs {
  Matrix rows;  // inputs of the product
  std::vector<float> energies;
  std::vector<std::uint32_t> order;
  std::vector<float> upper;

  CorrelatedInputs(std::size_t count, std::size_t columns) : order(columns) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    Matrix mixed(columns, std::vector<double>(columns));
    for (auto& row : mixed)
      for (double& x : row) x = normal(random);
    for (std::size_t i = 0; i < count; ++i) {
      rows.emplace_back(columns, 0.1 * normal(random));
      for (std::size_t j = 0; j < 3; ++j) {  // most of it lies in three directions
        const double by = normal(random);
        for (std::size_t k = 0; k < columns; ++k) rows[i][k] += by * mixed[j][k];
      }
      for (double& x : rows[i]) x += 0.2 * normal(random);
    }
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin(), order.end(), random);
    Matrix products(columns, std::vector<double>(columns));
    for (const auto& row : rows)
      for (std::size_t i = 0; i < columns; ++i)
        for (std::size_t k = 0; k < columns; ++k)
          products[i][k] += row[order[i]] * row[order[k]] / static_cast<double>(count);
    energies.resize(columns);
    for (std::size_t i = 0; i < columns; ++i)
      energies[order[i]] = static_cast<float>(products[i][i]);
    for (const auto& row : upper_factor(inverse(std::move(products))))
      for (const double x : row) upper.push_back(static_cast<float>(x));
  }

  InputFacts facts() const { return {energies, order, upper, nullptr}; }
};

}  // namespace modelport::weights
