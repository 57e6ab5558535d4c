// The numbers that torch's serialization gives to dtypes, memory formats and layouts.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/dtype.h"

namespace modelport::pt2 {

inline constexpr std::array<std::pair<Dtype, int>, 17> kScalarTypes{{
    {Dtype::f64, 8},
    {Dtype::f32, 7},
    {Dtype::f16, 6},
    {Dtype::bf16, 13},
    {Dtype::f8e4m3, 29},
    {Dtype::f8e5m2, 30},
    {Dtype::i64, 5},
    {Dtype::i32, 4},
    {Dtype::i16, 3},
    {Dtype::i8, 2},
    {Dtype::u64, 35},
    {Dtype::u32, 34},
    {Dtype::u16, 28},
    {Dtype::u8, 1},
    {Dtype::boolean, 12},
    {Dtype::c64, 10},
    {Dtype::c128, 11},
}};
static_assert(kScalarTypes.size() == kDtypes.size());

constexpr int scalar_type(Dtype dtype) {
  for (const auto& [known, number] : kScalarTypes) {
    if (known == dtype) return number;
  }
  return 0;
}

constexpr std::optional<Dtype> dtype_of_scalar_type(std::int64_t number) {
  for (const auto& [dtype, known] : kScalarTypes) {
    if (known == number) return dtype;
  }
  return std::nullopt;
}

inline constexpr std::array<std::pair<std::string_view, int>, 4> kMemoryFormats{{
    {"contiguous_format", 1},
    {"channels_last", 2},
    {"channels_last_3d", 3},
    {"preserve_format", 4},
}};

inline constexpr int kStrided = 7;

}  // namespace modelport::pt2
