// Element types of tensors, under the short names that the text form uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace modelport {

enum class Dtype : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  c64,
  c128,
};

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
  int digits = 0;  // binary ones, of floating types
};

/// One row a type, in the order of the enum.
inline constexpr std::array kDtypes{
    DtypeFacts{Dtype::f64, "f64", 8, 53},      DtypeFacts{Dtype::f32, "f32", 4, 24},
    DtypeFacts{Dtype::f16, "f16", 2, 11},      DtypeFacts{Dtype::bf16, "bf16", 2, 8},
    DtypeFacts{Dtype::f8e4m3, "f8e4m3", 1, 4}, DtypeFacts{Dtype::f8e5m2, "f8e5m2", 1, 3},
    DtypeFacts{Dtype::i64, "i64", 8},          DtypeFacts{Dtype::i32, "i32", 4},
    DtypeFacts{Dtype::i16, "i16", 2},          DtypeFacts{Dtype::i8, "i8", 1},
    DtypeFacts{Dtype::u64, "u64", 8},          DtypeFacts{Dtype::u32, "u32", 4},
    DtypeFacts{Dtype::u16, "u16", 2},          DtypeFacts{Dtype::u8, "u8", 1},
    DtypeFacts{Dtype::boolean, "bool", 1},     DtypeFacts{Dtype::c64, "c64", 8},
    DtypeFacts{Dtype::c128, "c128", 16},
};

consteval bool dtype_rows_follow_the_enum() {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (static_cast<std::size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(dtype_rows_follow_the_enum());

constexpr std::string_view name(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].name;
}

constexpr std::size_t byte_size(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].bytes;
}

constexpr std::int64_t bit_count(Dtype dtype) {
  return static_cast<std::int64_t>(8 * byte_size(dtype));
}

/// How many binary digits a number of a floating type has.
constexpr int significant_bits(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].digits;
}
constexpr double largest_below_one(Dtype dtype) {
  return 1 - 1 / static_cast<double>(std::int64_t{1} << significant_bits(dtype));
}

constexpr std::optional<Dtype> parse_dtype(std::string_view text) {
  for (const DtypeFacts& row : kDtypes) {
    if (row.name == text) return row.dtype;
  }
  return std::nullopt;
}

constexpr bool is_complex(Dtype d) { return d == Dtype::c64 || d == Dtype::c128; }
constexpr bool is_floating(Dtype d) { return d <= Dtype::f8e5m2; }
constexpr bool is_integral(Dtype d) { return d >= Dtype::i64 && d <= Dtype::u8; }
/// Integers that may be negative.
constexpr bool is_signed(Dtype d) { return d >= Dtype::i64 && d <= Dtype::i8; }

}  // namespace modelport
