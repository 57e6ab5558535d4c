// Four floats at a time, in a register of every processor. For the loops over weights only, which
// are compiled for finite numbers (CMakeLists.txt): with that a minimum is one instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace modelport::weights {

constexpr std::size_t kLanes = 4;
#include "weights/quantize/lanes.inc"

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
