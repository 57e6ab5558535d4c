#include "weights/quantize/scheme.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace modelport::weights {
namespace {

Weight shaped(Shape shape, Dtype dtype = Dtype::f32) {
  return {.name = "layers.0.down", .dtype = dtype, .shape = std::move(shape)};
}

std::vector<Diagnostic> refusals(const Weight& weight, const Scheme& scheme) {
  try {
    quantized_form(weight, scheme);
  } catch (const ExportError& error) {
    return error.diagnostics();
  }
  return {};
}

TEST_CASE("a group that does not divide a row is refused with groups that do") {
  const auto found =
      refusals(shaped({64, 160}), {.layout = QuantizedLayout::xnnpack_qbint4, .group = 64});
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == Code::bad_input);
  CHECK(
      found[0].what ==
      "layers.0.down [64, 160] cannot be quantized with groups of 64: xnnpack_qbint4 takes groups "
      "of a multiple of 32 that divide a row, and a row has 160 columns");
  CHECK(found[0].ways_out ==
        std::vector<std::string>{"group size 32", "group size 0: the whole row"});
}

TEST_CASE("the groups that are named are those nearest to the one asked for") {
  const auto found = refusals(shaped({4, 1000}),
                              {.layout = QuantizedLayout::executorch_embedding_4bit, .group = 64});
  REQUIRE(found.size() == 1);
  CHECK(found[0].ways_out[0] == "group size 25, 40, 50, 100");
}

TEST_CASE("a row that no group of 32 divides is sent to 8 bits") {
  const auto found =
      refusals(shaped({4, 100}), {.layout = QuantizedLayout::xnnpack_qbint4, .group = 32});
  REQUIRE(found.size() == 1);
  CHECK(found[0].ways_out == std::vector<std::string>{"8 bits (8da8w), for any number of columns"});
  CHECK(refusals(shaped({4, 100}), {.layout = QuantizedLayout::xnnpack_qbint4}).size() == 1);
}

TEST_CASE("onnx takes powers of two only, and rows that they do not divide") {
  CHECK(refusals(shaped({4, 100}), {.layout = QuantizedLayout::onnx_matmul_nbits, .group = 32})
            .empty());
  CHECK(refusals(shaped({4, 10}), {.layout = QuantizedLayout::onnx_matmul_nbits, .group = 16})
            .empty());
  const auto found =
      refusals(shaped({4, 96}), {.layout = QuantizedLayout::onnx_matmul_nbits, .group = 48});
  REQUIRE(found.size() == 1);
  CHECK(found[0].ways_out == std::vector<std::string>{"group size 16, 32, 64"});
  CHECK(refusals(shaped({4, 96}), {.layout = QuantizedLayout::onnx_matmul_nbits, .group = 8})
            .size() == 1);
  CHECK(refusals(shaped({4, 8}), {.layout = QuantizedLayout::onnx_matmul_nbits}).at(0).ways_out ==
        std::vector<std::string>{"group size 16, 32, 64"});
}

TEST_CASE("groups below one are refused") {
  CHECK(refusals(shaped({4, 64}), {.layout = QuantizedLayout::torchao_int8, .group = -32}).size() ==
        1);
}

TEST_CASE("two columns a byte need an even number of them, unless blocks are filled up") {
  const auto found = refusals(shaped({4, 33}), {.layout = QuantizedLayout::xnnpack_qcint4});
  REQUIRE(found.size() == 1);
  CHECK(found[0].what.ends_with("puts two columns into a byte, and their number is odd"));
  CHECK(refusals(shaped({4, 33}), {.layout = QuantizedLayout::onnx_matmul_nbits, .group = 32})
            .empty());
  CHECK(refusals(shaped({4, 33}), {.layout = QuantizedLayout::xnnpack_qcint8, .bits = 8}).empty());
  CHECK(refusals(shaped({4, 33}), {.layout = QuantizedLayout::torchao_int8}).empty());
}

TEST_CASE("what a layout does not have is refused, all of it at once") {
  const auto found = refusals(shaped({4, 64}), {.layout = QuantizedLayout::xnnpack_qcint8,
                                                .bits = 4,
                                                .group = 32,
                                                .zero_points = true,
                                                .scales = Dtype::f16});
  REQUIRE(found.size() == 4);
  CHECK(found[0].what ==
        "layers.0.down [4, 64] cannot be quantized: xnnpack_qcint8 has no codes of 4 bits");
  CHECK(found[1].what.ends_with("has no zero points"));
  CHECK(found[2].ways_out == std::vector<std::string>{"scales of f32"});
  CHECK(found[3].what.find("takes one scale a row") != std::string::npos);
  CHECK(refusals(shaped({4, 64}), {.layout = QuantizedLayout::torchao_int8, .bits = 5}).size() ==
        1);
}

TEST_CASE("integers, vectors and empty weights are not quantized") {
  const Scheme scheme{.layout = QuantizedLayout::xnnpack_qcint8, .bits = 8};
  CHECK(refusals(shaped({4, 64}, Dtype::i8), scheme).size() == 1);
  CHECK(refusals(shaped({64}), scheme).size() == 1);
  CHECK(refusals(shaped({0, 64}), scheme).size() == 1);
  CHECK(refusals(shaped({4, 0}), scheme).at(0).ways_out ==
        std::vector<std::string>{"leave layers.0.down as it is"});
}

TEST_CASE("layouts are found by their names") {
  for (const LayoutFacts& row : kLayouts) CHECK(parse_layout(row.name) == row.layout);
  CHECK_FALSE(parse_layout("marlin"));
}

}  // namespace
}  // namespace modelport::weights
