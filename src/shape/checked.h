// Integer arithmetic that refuses to wrap around: an overflow is an error the user can read.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace modelport::shape::detail {

[[noreturn]] void throw_arithmetic(std::string what);
[[noreturn]] void throw_overflow();

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) throw_overflow();
  return result;
}

inline std::int64_t checked_sub(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) throw_overflow();
  return result;
}

inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) throw_overflow();
  return result;
}

inline std::int64_t checked_neg(std::int64_t a) { return checked_sub(0, a); }

/// Rounds towards minus infinity; b is not zero.
inline std::int64_t checked_floor_div(std::int64_t a, std::int64_t b) {
  if (b == -1) return checked_neg(a);
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

/// Has the sign of b, which is not zero.
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

/// a * b, or false where its magnitude exceeds `limit`. Unsigned inside: clang's check of a signed
/// product of 128 bits calls a function that gcc's runtime library does not have.
inline bool multiply_wide(__int128 a, __int128 b, __int128 limit, __int128& result) {
  if (a == 0 || b == 0) {
    result = 0;
    return true;
  }
  if ((a < 0 ? -a : a) > limit / (b < 0 ? -b : b)) return false;
  using Unsigned = unsigned __int128;
  result = static_cast<__int128>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  return true;
}

/// Of the magnitudes; 0 only for two zeros. Fits unless both are 0 or INT64_MIN.
inline std::int64_t greatest_common_divisor(std::int64_t a, std::int64_t b) {
  auto magnitude = [](std::int64_t v) {
    return v < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
  };
  std::uint64_t x = magnitude(a), y = magnitude(b);
  while (y != 0) {
    const std::uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  if (x > static_cast<std::uint64_t>(INT64_MAX)) return 1;  // 2**63: one is a divisor that fits
  return static_cast<std::int64_t>(x);
}

}  // namespace modelport::shape::detail
