// Four floats at a time, in a register of every processor. For the loops over weights only, which
// are compiled for finite numbers (CMakeLists.txt): with that a minimum is one instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace modelport::weights {

// Vectors of gcc and clang: both keep them in registers on every processor, as neither does with
// arrays of sums. A compiler may not reorder a plain sum of floats.
constexpr std::size_t kLanes = 4;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));

inline Floats load(const float* from) {
  Floats loaded;
  std::memcpy(&loaded, from, sizeof(loaded));
  return loaded;
}

inline void store(Floats values, float* to) { std::memcpy(to, &values, sizeof(values)); }

inline Floats all(float value) { return Floats{value, value, value, value}; }

inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }
inline Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

inline Floats clamped(Floats value, Floats low, Floats high) {
  return smaller(larger(value, low), high);
}

/// Added to numbers far below 2^22, it leaves no bits for a fraction: the sum less kToInteger is
/// the nearest integer, ties to even. std::nearbyint is no vector instruction of plain x86_64.
constexpr float kToInteger = 12582912.0F;  // 1.5 * 2^23

inline Floats rounded(Floats value) { return (value + kToInteger) - kToInteger; }

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
