#include "weights/quantize/widen.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "weights/convert.h"

namespace modelport::weights {
namespace {

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Of a finite number. f16 that is not normal gets a leading bit, which a subtraction takes away.
float from_f16(std::uint16_t bits) {
  constexpr std::uint32_t kRebias = (127U - 15U) << 23;
  constexpr std::uint32_t kLeading = (127U - 14U) << 23;
  const std::uint32_t magnitude = (bits & 0x7fffU) << 13;
  const float small = std::bit_cast<float>(magnitude + kLeading) - std::bit_cast<float>(kLeading);
  const std::uint32_t value =
      magnitude < 1U << 23 ? std::bit_cast<std::uint32_t>(small) : magnitude + kRebias;
  return std::bit_cast<float>(value | (bits & 0x8000U) << 16);
}

/// The exponent is all ones in what is not finite: `exponent` has those bits.
template <class Bits, class Convert>
bool widen_all(const std::byte* in, std::span<float> out, Bits exponent, const Convert& convert) {
  // Counted rather than left at the first one, so that the loop can run in vectors.
  Bits bad = 0;
  float* to = out.data();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, in + i * sizeof(bits), sizeof(bits));  // a mapped file aligns nothing
    bad |= static_cast<Bits>((bits & exponent) == exponent);
    to[i] = convert(bits);
  }
  return bad == 0;
}

}  // namespace

bool widen(Dtype from, std::span<const std::byte> in, std::span<float> out) {
  if (in.size() != out.size() * byte_size(from)) {
    throw InternalError("conversion between buffers of different length");
  }
  constexpr std::uint32_t kExponent = 0x7f800000;
  const auto same = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  if (from == Dtype::bf16) return widen_all<std::uint16_t>(in.data(), out, 0x7f80, from_bf16);
  if (from == Dtype::f16) return widen_all<std::uint16_t>(in.data(), out, 0x7c00, from_f16);
  if (from == Dtype::f32) return widen_all<std::uint32_t>(in.data(), out, kExponent, same);
  convert(from, in, Dtype::f32, std::as_writable_bytes(out));
  return widen_all<std::uint32_t>(std::as_bytes(out).data(), out, kExponent, same);
}

}  // namespace modelport::weights
