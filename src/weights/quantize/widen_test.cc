#include "weights/quantize/widen.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "weights/convert.h"

namespace modelport::weights {
namespace {

TEST_CASE("every finite f16 and bf16 widens to its value, and what is not finite is told") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    int finite = 0;
    for (int bits = 0; bits < 1 << 16; ++bits) {
      const auto half = static_cast<std::uint16_t>(bits);
      const auto bytes = std::as_bytes(std::span(&half, 1));
      float expected = 0;
      convert(dtype, bytes, Dtype::f32, std::as_writable_bytes(std::span(&expected, 1)));
      float value = 0;
      const bool ok = widen(dtype, bytes, std::span(&value, 1));
      if (ok != std::isfinite(expected)) FAIL_CHECK("finite or not: ", bits);
      if (!ok) continue;
      ++finite;
      if (std::memcmp(&value, &expected, sizeof(value)) != 0) FAIL_CHECK("value of ", bits);
    }
    CHECK(finite == (dtype == Dtype::f16 ? 2 * 31 * 1024 : 2 * 255 * 128));
  }
}

TEST_CASE("f64 beyond f32 is not finite") {
  const std::vector<double> values{1.5, 1e300};
  std::vector<float> out(2);
  CHECK_FALSE(widen(Dtype::f64, std::as_bytes(std::span(values)), out));
  CHECK(out[0] == 1.5F);
  CHECK(widen(Dtype::f64, std::as_bytes(std::span(values).first(1)), std::span(out).first(1)));
}

}  // namespace
}  // namespace modelport::weights
