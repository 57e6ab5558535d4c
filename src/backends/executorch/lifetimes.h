// From when to when the storages of a method are needed.
#pragma once

#include <vector>

#include "backends/executorch/method.h"

namespace modelport::executorch {

/// In steps: 0 is before the first instruction, instruction i is i + 1, the outputs come last.
struct Lifetime {
  std::size_t begin = SIZE_MAX;  // SIZE_MAX: never used
  std::size_t end = 0;
  bool overlaps(const Lifetime& other) const { return begin <= other.end && other.begin <= end; }
};

/// One for each storage. State that waits to be written is read after the last instruction.
std::vector<Lifetime> lifetimes(const Method& method);

}  // namespace modelport::executorch
