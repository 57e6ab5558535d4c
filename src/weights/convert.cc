#include "weights/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace modelport::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "weights are little-endian on disk");

/// An IEEE format by its field widths. Everything below works on bits: the result depends neither
/// on the rounding mode of the machine nor on the conversions that it has.
template <class BitsType, int kExponent, int kMantissa>
struct Format {
  using Bits = BitsType;
  static constexpr int kExponentBits = kExponent;
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr std::uint64_t kExponentMask = (std::uint64_t{1} << kExponent) - 1;
  static constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissa) - 1;
  static constexpr std::uint64_t kInfinity = kExponentMask << kMantissa;
  static constexpr int kSignShift = kExponent + kMantissa;
};
using F64 = Format<std::uint64_t, 11, 52>;
using F32 = Format<std::uint32_t, 8, 23>;
using F16 = Format<std::uint16_t, 5, 10>;
using Bf16 = Format<std::uint16_t, 8, 7>;

/// bits / 2^shift, to nearest, ties to even; shift is positive.
constexpr std::uint64_t shift_rounded(std::uint64_t bits, int shift) {
  if (shift > 64) return 0;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t kept = shift == 64 ? 0 : bits >> shift;
  const std::uint64_t lost = shift == 64 ? bits : bits & (half + (half - 1));
  return kept + (lost > half || (lost == half && (kept & 1) != 0) ? 1 : 0);
}

/// A finite magnitude that is not zero.
template <class From, class To>
constexpr std::uint64_t convert_finite(std::uint64_t magnitude, ConversionCounts& counts) {
  const auto exponent_field = static_cast<int>(magnitude >> From::kMantissaBits);
  const std::uint64_t mantissa = magnitude & From::kMantissaMask;
  const bool normal = exponent_field != 0;
  const std::uint64_t significand = mantissa + (normal ? From::kMantissaMask + 1 : 0);
  // The value is `aligned` (its top bit set) times 2^(exponent - 63).
  const int leading = std::countl_zero(significand);
  const std::uint64_t aligned = significand << leading;
  const int exponent =
      (normal ? exponent_field : 1) - From::kBias - From::kMantissaBits + 63 - leading;
  const int field = exponent + To::kBias;
  if (field >= static_cast<int>(To::kExponentMask)) {
    ++counts.overflows;
    return To::kInfinity;
  }
  const int shift = 63 - To::kMantissaBits;
  if (field < 1) {
    const std::uint64_t result = shift_rounded(aligned, shift + 1 - field);
    if (result == 0) ++counts.underflows;
    return result;  // 2^kMantissaBits is the smallest normal number, so a carry comes out right
  }
  // The hidden bit adds one to the exponent field, and so does a carry out of the mantissa.
  const std::uint64_t result =
      (static_cast<std::uint64_t>(field - 1) << To::kMantissaBits) + shift_rounded(aligned, shift);
  if (result >= To::kInfinity) {
    ++counts.overflows;
    return To::kInfinity;
  }
  return result;
}

/// Nearly all weights are normal numbers that stay normal: a shift and another bias do.
template <class From, class To>
struct NormalRange {
  static constexpr int kRebias = From::kBias - To::kBias;
  static constexpr int kLowest = std::max(1, 1 + kRebias);
  static constexpr int kHighest = std::min(static_cast<int>(From::kExponentMask) - 1,
                                           static_cast<int>(To::kExponentMask) - 1 + kRebias);
  static constexpr std::uint64_t kBegin = std::uint64_t{kLowest} << From::kMantissaBits;
  static constexpr std::uint64_t kEnd = std::uint64_t{kHighest + 1} << From::kMantissaBits;

  static constexpr bool contains(std::uint64_t magnitude) {
    return magnitude - kBegin < kEnd - kBegin;
  }

  static constexpr std::uint64_t convert(std::uint64_t magnitude, ConversionCounts& counts) {
    constexpr int kDrop = From::kMantissaBits - To::kMantissaBits;
    // Unsigned arithmetic wraps, so a negative change of bias needs no case of its own.
    const std::uint64_t rebased =
        magnitude - (static_cast<std::uint64_t>(std::int64_t{kRebias}) << From::kMantissaBits);
    if constexpr (kDrop <= 0) {
      return rebased << -kDrop;
    } else {
      const std::uint64_t odd = rebased >> kDrop & 1;
      const std::uint64_t result =
          (rebased + ((std::uint64_t{1} << (kDrop - 1)) - 1) + odd) >> kDrop;
      counts.overflows += result >= To::kInfinity ? 1 : 0;  // a carry can only reach it exactly
      return result;
    }
  }
};

template <class From, class To>
constexpr typename To::Bits convert_one(std::uint64_t bits, ConversionCounts& counts) {
  const std::uint64_t sign = bits >> From::kSignShift;
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << From::kSignShift) - 1);
  std::uint64_t result = 0;
  if (NormalRange<From, To>::contains(magnitude)) {
    result = NormalRange<From, To>::convert(magnitude, counts);
  } else if (magnitude > From::kInfinity) {
    // The payload's top bits are the ones that every format has.
    const std::uint64_t payload = magnitude & From::kMantissaMask;
    constexpr int kDrop = From::kMantissaBits - To::kMantissaBits;
    std::uint64_t kept =
        kDrop >= 0 ? payload >> std::max(kDrop, 0) : payload << std::max(-kDrop, 0);
    if (kept == 0) kept = std::uint64_t{1} << (To::kMantissaBits - 1);  // else it would be infinity
    result = To::kInfinity | kept;
  } else if (magnitude == From::kInfinity) {
    result = To::kInfinity;
  } else if (magnitude != 0) {
    result = convert_finite<From, To>(magnitude, counts);
  }
  return static_cast<typename To::Bits>(sign << To::kSignShift | result);
}

template <class From, class To>
ConversionCounts convert_all(const std::byte* in, std::byte* out, std::size_t count) {
  ConversionCounts counts;
  for (std::size_t i = 0; i < count; ++i) {
    typename From::Bits bits;
    std::memcpy(&bits, in + i * sizeof(bits), sizeof(bits));  // a mapped file aligns nothing
    const auto result = convert_one<From, To>(bits, counts);
    std::memcpy(out + i * sizeof(result), &result, sizeof(result));
  }
  return counts;
}

template <class From>
ConversionCounts convert_from(Dtype to, const std::byte* in, std::byte* out, std::size_t count) {
  if (to == Dtype::f64) return convert_all<From, F64>(in, out, count);
  if (to == Dtype::f32) return convert_all<From, F32>(in, out, count);
  if (to == Dtype::f16) return convert_all<From, F16>(in, out, count);
  return convert_all<From, Bf16>(in, out, count);
}

}  // namespace

ConversionCounts convert(Dtype from, std::span<const std::byte> in, Dtype to,
                         std::span<std::byte> out) {
  const std::size_t count = in.size() / byte_size(from);
  if (!can_convert(from) || !can_convert(to)) {
    throw InternalError("only f64, f32, f16 and bf16 are converted");
  }
  if (in.size() != count * byte_size(from) || out.size() != count * byte_size(to)) {
    throw InternalError("conversion between buffers of different length");
  }
  if (from == to) {
    std::copy(in.begin(), in.end(), out.begin());
    return {};
  }
  if (from == Dtype::f64) return convert_from<F64>(to, in.data(), out.data(), count);
  if (from == Dtype::f32) return convert_from<F32>(to, in.data(), out.data(), count);
  if (from == Dtype::f16) return convert_from<F16>(to, in.data(), out.data(), count);
  return convert_from<Bf16>(to, in.data(), out.data(), count);
}

ConversionCounts convert_to(Sink& sink, Dtype from, std::span<const std::byte> in, Dtype to) {
  constexpr std::size_t kElementsAtOnce = std::size_t{1} << 16;
  std::vector<std::byte> buffer(kElementsAtOnce * byte_size(to));
  ConversionCounts counts;
  while (!in.empty()) {
    const std::size_t bytes = std::min(in.size(), kElementsAtOnce * byte_size(from));
    const std::span out(buffer.data(), bytes / byte_size(from) * byte_size(to));
    counts += convert(from, in.first(bytes), to, out);
    sink.write(out);
    in = in.subspan(bytes);
  }
  return counts;
}

}  // namespace modelport::weights
