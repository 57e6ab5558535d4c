// For tests: weights quantized into memory, and back again by a reading of each layout that shares
// nothing with the code that packs it.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "weights/convert.h"
#include "weights/quantize/quantize.h"

namespace modelport::weights {

struct Quantized {
  Scheme scheme;
  QuantizedForm form;
  std::vector<int> codes;  // bytes as they are written
  std::vector<float> scales;
  std::vector<int> zero_points;
  QuantizationReport report;
};

inline std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

inline Weight weight_of(const std::vector<float>& values, Shape shape) {
  return {.name = "w", .shape = std::move(shape), .bytes = std::as_bytes(std::span(values))};
}

inline Quantized quantized(const Weight& weight, const Scheme& scheme,
                           const QuantizeOptions& options = {}) {
  MemorySink codes;
  MemorySink scales;
  MemorySink zero_points;
  Quantized q{.scheme = scheme, .form = quantized_form(weight, scheme)};
  q.report = quantize(weight, scheme, {&codes, &scales, &zero_points}, options);
  for (const std::byte b : codes.bytes()) q.codes.push_back(std::to_integer<int>(b));
  for (const std::byte b : zero_points.bytes()) q.zero_points.push_back(std::to_integer<int>(b));
  q.scales.resize(scales.bytes().size() / byte_size(q.form.scales.dtype));
  convert(q.form.scales.dtype, scales.bytes(), Dtype::f32,
          std::as_writable_bytes(std::span(q.scales)));
  return q;
}

inline Quantized quantized(const std::vector<float>& values, Shape shape, const Scheme& scheme,
                           const QuantizeOptions& options = {}) {
  return quantized(weight_of(values, std::move(shape)), scheme, options);
}

/// The code of a column, or the zero point of a group, of a row of so many bytes.
inline int unpacked(const Quantized& q, const std::vector<int>& bytes, std::size_t row_begin,
                    std::size_t index) {
  const bool signed_bytes = q.form.codes.dtype == Dtype::i8;
  const bool nibbles = q.scheme.bits == 4 && !signed_bytes;
  if (!nibbles) {
    const int byte = bytes[row_begin + index];
    return signed_bytes ? static_cast<std::int8_t>(byte) + (1 << (q.scheme.bits - 1)) : byte;
  }
  const bool high_first = q.scheme.layout == QuantizedLayout::executorch_embedding_4bit;
  const int byte = bytes[row_begin + index / 2];
  return (index % 2 == 0) == high_first ? byte >> 4 : byte & 15;
}

inline std::vector<float> dequantized(const Quantized& q) {
  const auto rows = static_cast<std::size_t>(q.form.rows);
  const auto columns = static_cast<std::size_t>(q.form.columns);
  const auto group = static_cast<std::size_t>(q.form.group);
  const auto groups = static_cast<std::size_t>(q.form.groups_per_row);
  std::vector<float> values;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const int code = unpacked(q, q.codes, row * (q.codes.size() / rows), column);
      int zero = 1 << (q.scheme.bits - 1);
      if (!q.zero_points.empty()) {
        zero = unpacked(q, q.zero_points, row * (q.zero_points.size() / rows), column / group);
      }
      const float scale = q.scales[row * groups + column / group];
      values.push_back(scale * static_cast<float>(code - zero));
    }
  }
  return values;
}

inline double relative_error(std::span<const float> values, std::span<const float> back) {
  double error = 0;
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(values[i]) - static_cast<double>(back[i]), 2);
    total += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / total);
}

}  // namespace modelport::weights
