#include "weights/quantize/pack.h"

#include "base/error.h"

namespace modelport::weights {
namespace {

/// `even` and `odd` say how far the code of that column is shifted.
template <int kEven, int kOdd>
void pack_nibbles(std::span<const std::uint8_t> codes, std::byte* out) {
  const std::size_t pairs = codes.size() / 2;
  const std::uint8_t* from = codes.data();
  for (std::size_t i = 0; i < pairs; ++i) {
    out[i] = static_cast<std::byte>(from[2 * i] << kEven | from[2 * i + 1] << kOdd);
  }
  if (codes.size() % 2 != 0) out[pairs] = static_cast<std::byte>(codes.back() << kEven);
}

void pack_bytes(std::span<const std::uint8_t> codes, std::uint8_t zero, std::byte* out) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    out[i] = static_cast<std::byte>(static_cast<std::uint8_t>(codes[i] - zero));
  }
}

}  // namespace

void pack(std::span<const std::uint8_t> codes, int bits, Packing packing,
          std::span<std::byte> out) {
  if (out.size() != (in_nibbles(packing) ? (codes.size() + 1) / 2 : codes.size())) {
    throw InternalError("codes do not fill the bytes that they are packed into");
  }
  switch (packing) {
    case Packing::low_nibble_first:
      return pack_nibbles<0, 4>(codes, out.data());
    case Packing::high_nibble_first:
      return pack_nibbles<4, 0>(codes, out.data());
    case Packing::unsigned_byte:
      return pack_bytes(codes, 0, out.data());
    case Packing::signed_byte:
      return pack_bytes(codes, static_cast<std::uint8_t>(1 << (bits - 1)), out.data());
  }
}

}  // namespace modelport::weights
