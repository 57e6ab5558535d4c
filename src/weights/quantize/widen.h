// Weights of any floating-point type as f32, fast, and whether all of them are finite.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"

namespace modelport::weights {

/// `in` holds as many elements of `from` (one of f64, f32, f16, bf16) as `out` has, and needs no
/// alignment. False if one of them is infinite or not a number, or
/// becomes so; then such elements of `out` may be any numbers.
bool widen(Dtype from, std::span<const std::byte> in, std::span<float> out);

}  // namespace modelport::weights
