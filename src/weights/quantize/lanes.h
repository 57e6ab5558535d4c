// Four floats at a time, in a register of every processor. For the loops over weights only, which
// are compiled for finite numbers (CMakeLists.txt): with that a minimum is one instruction.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace modelport::weights {

constexpr std::size_t kLanes = 4;
#include "weights/quantize/lanes.inc"

using Bytes = std::uint8_t __attribute__((vector_size(sizeof(Floats))));

/// The lowest byte of each.
inline Bytes last_bytes(const std::array<Ints, 4>& values) {
  const auto every_second = [](Bytes a, Bytes b) {
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  };
  std::array<Bytes, 4> bytes;
  std::memcpy(&bytes, &values, sizeof(bytes));
  return every_second(every_second(bytes[0], bytes[1]), every_second(bytes[2], bytes[3]));
}

/// Two halves, then two quarters, without a branch: which one is larger nobody can predict.
template <class Combine>
float folded(Floats a, const Combine& combine) {
  a = combine(a, Floats{a[2], a[3], a[0], a[1]});
  a = combine(a, Floats{a[1], a[0], a[3], a[2]});
  return a[0];
}

inline float sum(Floats a) {
  return folded(a, [](Floats x, Floats y) { return x + y; });
}

}  // namespace modelport::weights
