#include "weights/convert.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/error.h"

namespace modelport::weights {
namespace {

/// A 16-bit format, its values computed with ldexp: a reference that shares nothing with the code.
struct SmallFormat {
  Dtype dtype;
  int exponent_bits;
  int mantissa_bits;
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }
  /// Of a positive finite number, and of infinity as the next power of two.
  double value(int bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    return std::ldexp(exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits),
                      std::max(exponent, 1) - bias - mantissa_bits);
  }
};
constexpr SmallFormat kF16{Dtype::f16, 5, 10};
constexpr SmallFormat kBf16{Dtype::bf16, 8, 7};

/// value(0), value(1), … up to and with infinity.
const std::vector<double>& values_of(const SmallFormat& format) {
  const auto all = [](const SmallFormat& f) {
    std::vector<double> values;
    for (int bits = 0; bits <= f.infinity(); ++bits) values.push_back(f.value(bits));
    return values;
  };
  static const std::vector<double> f16 = all(kF16);
  static const std::vector<double> bf16 = all(kBf16);
  return format.dtype == Dtype::f16 ? f16 : bf16;
}

template <class To, class From>
To convert_value(Dtype from, From value, Dtype to, ConversionCounts* counts = nullptr) {
  To result{};
  const ConversionCounts found = convert(from, std::as_bytes(std::span(&value, 1)), to,
                                         std::as_writable_bytes(std::span(&result, 1)));
  if (counts != nullptr) *counts = found;
  return result;
}

/// Nearest, ties to even, by comparing with the exact midpoint of the two neighbours.
std::uint16_t nearest(const SmallFormat& format, double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  const std::vector<double>& values = values_of(format);
  if (size >= values.back()) return sign | format.infinity();
  const auto above = std::upper_bound(values.begin(), values.end(), size);
  const auto high = static_cast<int>(above - values.begin());
  const int low = high - 1;
  const double midpoint = (*(above - 1) + *above) / 2;
  const bool up = size > midpoint || (size == midpoint && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

void check_against_reference(const SmallFormat& format, double value) {
  ConversionCounts counts;
  const auto got = convert_value<std::uint16_t>(Dtype::f64, value, format.dtype, &counts);
  const std::uint16_t wanted = nearest(format, value);
  const ConversionCounts wanted_counts{
      .overflows = std::isfinite(value) && (wanted & 0x7FFF) == format.infinity() ? 1u : 0u,
      .underflows = value != 0 && (wanted & 0x7FFF) == 0 ? 1u : 0u};
  if (got != wanted || counts != wanted_counts) {
    CAPTURE(value);
    CHECK(got == wanted);
    CHECK(counts == wanted_counts);
  }
  const auto single = static_cast<float>(value);
  if (static_cast<double>(single) != value) return;
  if (convert_value<std::uint16_t>(Dtype::f32, single, format.dtype) != wanted) {
    CAPTURE(single);
    CHECK(convert_value<std::uint16_t>(Dtype::f32, single, format.dtype) == wanted);
  }
}

TEST_CASE("all 65536 values of f16 and bf16 survive the way through wider types, NaNs included") {
  for (const SmallFormat& format : {kF16, kBf16}) {
    int wrong = 0;
    for (int i = 0; i < 0x10000; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const auto f32 = convert_value<float>(format.dtype, bits, Dtype::f32);
      const auto f64 = convert_value<double>(format.dtype, bits, Dtype::f64);
      if ((bits & 0x7FFF) > format.infinity()) {
        wrong += !std::isnan(f32) + !std::isnan(f64);
      } else {
        double exact = std::numeric_limits<double>::infinity();
        if ((bits & 0x7FFF) != format.infinity()) exact = format.value(bits & 0x7FFF);
        exact = std::copysign(exact, (bits & 0x8000) != 0 ? -1.0 : 1.0);
        wrong += f64 != exact || std::signbit(f64) != std::signbit(exact);
        wrong += static_cast<double>(f32) != exact;
      }
      wrong += convert_value<std::uint16_t>(Dtype::f32, f32, format.dtype) != bits;
      wrong += convert_value<std::uint16_t>(Dtype::f64, f64, format.dtype) != bits;
    }
    CAPTURE(name(format.dtype));
    CHECK(wrong == 0);
  }
}

TEST_CASE("at, just below and just above every midpoint, rounding is to nearest even") {
  constexpr double kUp = std::numeric_limits<double>::infinity();
  for (const SmallFormat& format : {kF16, kBf16}) {
    for (int bits = 0; bits < format.infinity(); ++bits) {
      const double midpoint = (format.value(bits) + format.value(bits + 1)) / 2;
      for (const double sign : {1.0, -1.0}) {
        check_against_reference(format, sign * format.value(bits));
        check_against_reference(format, sign * midpoint);
        check_against_reference(format, sign * std::nextafter(midpoint, 0.0));
        check_against_reference(format, sign * std::nextafter(midpoint, kUp));
        const auto single = static_cast<float>(midpoint);
        check_against_reference(format, sign * static_cast<double>(std::nextafter(single, 0.0f)));
      }
    }
    check_against_reference(format, kUp);
    check_against_reference(format, -kUp);
    check_against_reference(format, std::numeric_limits<double>::max());
    check_against_reference(format, std::numeric_limits<double>::denorm_min());
  }
}

TEST_CASE("random bit patterns agree with the reference and with the machine's own conversions") {
  std::mt19937_64 random(7);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t bits = random();
    double f64 = 0;
    std::memcpy(&f64, &bits, sizeof(f64));
    float f32 = 0;
    std::memcpy(&f32, &bits, sizeof(f32));
    if (i % 2 == 0) f64 = std::ldexp(std::fmod(f64, 2.0), static_cast<int>(bits % 320) - 160);
    if (!std::isnan(f64)) {
      check_against_reference(kF16, f64);
      check_against_reference(kBf16, f64);
      // The machine rounds to nearest even too; a finite value out of float's range is undefined
      // in C++ only when no infinity exists.
      if (std::fabs(f64) <= std::numeric_limits<float>::max()) {
        wrong += convert_value<float>(Dtype::f64, f64, Dtype::f32) != static_cast<float>(f64);
      }
    }
    if (!std::isnan(f32)) {
      check_against_reference(kF16, static_cast<double>(f32));
      check_against_reference(kBf16, static_cast<double>(f32));
      wrong += convert_value<double>(Dtype::f32, f32, Dtype::f64) != static_cast<double>(f32);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("between f16 and bf16 every value is rounded once") {
  int wrong = 0;
  for (int i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    for (const auto& [from, to] : {std::pair(kF16, kBf16), std::pair(kBf16, kF16)}) {
      const auto value = convert_value<double>(from.dtype, bits, Dtype::f64);
      const auto got = convert_value<std::uint16_t>(from.dtype, bits, to.dtype);
      wrong += std::isnan(value) ? (got & 0x7FFF) <= to.infinity() : got != nearest(to, value);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a value that would be rounded twice through f32 is rounded once") {
  // Just above a tie of f16, by less than f32 can hold: by way of f32 it would fall to the tie and
  // then to even.
  const double value = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  CHECK(convert_value<std::uint16_t>(Dtype::f64, value, Dtype::f16) == 0x3C01);
}

TEST_CASE("finite values that become infinite and others that become zero are counted") {
  const std::vector<float> values{65504.0f, 65519.0f, 65520.0f, -1e9f,     1e-8f, -1e-9f, 0.0f,
                                  -0.0f,    6e-8f,    INFINITY, -INFINITY, NAN,   1.0f};
  std::vector<std::uint16_t> half(values.size());
  const ConversionCounts counts = convert(Dtype::f32, std::as_bytes(std::span(values)), Dtype::f16,
                                          std::as_writable_bytes(std::span(half)));
  CHECK(counts == ConversionCounts{.overflows = 2, .underflows = 2});
  CHECK(half[1] == 0x7BFF);
  CHECK(half[2] == 0x7C00);
  CHECK(half[3] == 0xFC00);
  CHECK(half[5] == 0x8000);
  CHECK(half[7] == 0x8000);
  CHECK(half[8] == 0x0001);
}

TEST_CASE("a NaN whose payload does not fit stays a NaN") {
  const std::uint32_t low_payload = 0xFF800001;
  CHECK(convert_value<std::uint16_t>(Dtype::f32, low_payload, Dtype::f16) == 0xFE00);
  CHECK(convert_value<std::uint16_t>(Dtype::f32, low_payload, Dtype::bf16) == 0xFFC0);
}

TEST_CASE("streaming converts in pieces and gives what one call gives") {
  std::vector<float> values(200'003);
  std::mt19937 random(3);
  for (float& value : values) value = std::ldexp(1.0f, static_cast<int>(random() % 60) - 30);
  std::vector<std::byte> whole(values.size() * 2);
  const auto in = std::as_bytes(std::span(values));
  const ConversionCounts counts = convert(Dtype::f32, in, Dtype::f16, whole);
  MemorySink sink;
  CHECK(convert_to(sink, Dtype::f32, in, Dtype::f16) == counts);
  CHECK(counts.overflows > 0);
  CHECK(counts.underflows > 0);
  CHECK(sink.bytes() == whole);
  MemorySink same;
  CHECK(convert_to(same, Dtype::f32, in, Dtype::f32) == ConversionCounts{});
  CHECK(std::equal(in.begin(), in.end(), same.bytes().begin(), same.bytes().end()));
  MemorySink none;
  CHECK(convert_to(none, Dtype::f32, {}, Dtype::f16) == ConversionCounts{});
  CHECK(none.bytes().empty());
}

TEST_CASE("integers and buffers of another length are refused as errors of ours") {
  std::vector<std::byte> four(4);
  std::vector<std::byte> three(3);
  CHECK_THROWS_AS(convert(Dtype::i32, four, Dtype::f32, four), InternalError);
  CHECK_THROWS_AS(convert(Dtype::f32, four, Dtype::f16, four), InternalError);
  CHECK_THROWS_AS(convert(Dtype::f32, three, Dtype::f32, three), InternalError);
}

}  // namespace
}  // namespace modelport::weights
