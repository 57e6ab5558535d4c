// Codes as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/quantize/layout.h"

namespace modelport::weights {

/// Codes count from 0 to 2^bits - 1. `out` has a byte for each of them, or for two where they lie
/// in nibbles; an odd one out has a zero beside it.
void pack(std::span<const std::uint8_t> codes, int bits, Packing packing, std::span<std::byte> out);

}  // namespace modelport::weights
