#include "weights/quantize/quantize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/scratch_folder.h"
#include "weights/convert.h"
#include "weights/quantize/correlated_inputs.h"
#include "weights/quantize/quantized_values.h"

namespace modelport::weights {
namespace {

std::vector<int> bytes_of(const std::vector<std::byte>& bytes) {
  std::vector<int> values;
  for (const std::byte b : bytes) values.push_back(std::to_integer<int>(b));
  return values;
}

TEST_CASE("xnnpack_qbint4: the even column in the low nibble, code + 8, scales of bf16") {
  // The largest is 15 and 15 / 7.5 = 2; the second group's scale is 1.
  std::vector<float> values(64, 0.0F);
  const std::vector<float> first{15, -15, 2, -2, 4, 6};
  std::ranges::copy(first, values.begin());
  values[32] = -7.5F;
  values[33] = 3;
  const Quantized q = quantized(
      values, {1, 64},
      {.layout = QuantizedLayout::xnnpack_qbint4, .group = 32, .choice = ScaleChoice::range});
  // 15 / 2 = 7.5 is beyond the highest code, 7; -7.5 rounds to -8.
  CHECK(q.codes[0] == (15 | 0 << 4));
  CHECK(q.codes[1] == (9 | 7 << 4));
  CHECK(q.codes[2] == (10 | 11 << 4));
  CHECK(q.codes[3] == 0x88);
  CHECK(q.codes[16] == (0 | 11 << 4));
  CHECK(q.form.codes.shape == Shape{1, 32});
  CHECK(q.form.scales.shape == Shape{1, 2});
  CHECK(q.form.scales.dtype == Dtype::bf16);
  CHECK(q.scales == std::vector<float>{2, 1});
}

TEST_CASE("xnnpack_qcint4: one f32 scale a row") {
  const Quantized q =
      quantized({15, -15, 2, -2, 0, 3, 7.5F, 1}, {2, 4},
                {.layout = QuantizedLayout::xnnpack_qcint4, .choice = ScaleChoice::range});
  CHECK(q.codes == std::vector<int>{15 | 0 << 4, 9 | 7 << 4, 8 | 11 << 4, 15 | 9 << 4});
  CHECK(q.scales == std::vector<float>{2, 1});
  CHECK(q.form.scales.shape == Shape{2});
}

TEST_CASE(
    "xnnpack_qcint8 and executorch_embedding_byte: signed bytes, 127.5 steps to the largest") {
  for (const QuantizedLayout layout :
       {QuantizedLayout::xnnpack_qcint8, QuantizedLayout::executorch_embedding_byte}) {
    const Quantized q = quantized({255, -255, 2, -3, 0, 63.75F}, {2, 3},
                                  {.layout = layout, .bits = 8, .choice = ScaleChoice::range});
    CHECK(q.form.codes.dtype == Dtype::i8);
    CHECK(q.form.codes.shape == Shape{2, 3});
    // 255 / 2 is cut to 127, -127.5 goes to the even -128; -3 / 0.5 is -6.
    CHECK(q.codes == std::vector<int>{127, 256 - 128, 1, 256 - 6, 0, 127});
    CHECK(q.scales == std::vector<float>{2, 0.5F});
    CHECK(q.form.scales.shape == Shape{2});
  }
}

TEST_CASE("executorch_embedding_4bit: the even column in the high nibble") {
  Scheme scheme{.layout = QuantizedLayout::executorch_embedding_4bit, .choice = ScaleChoice::range};
  const std::vector<float> values{15, -15, 2, -2, 0, 3, 7.5F, 1};
  const Quantized rows = quantized(values, {2, 4}, scheme);
  CHECK(rows.codes == std::vector<int>{15 << 4 | 0, 9 << 4 | 7, 8 << 4 | 11, 15 << 4 | 9});
  CHECK(rows.form.scales.shape == Shape{2});
  scheme.group = 2;
  const Quantized groups = quantized(values, {2, 4}, scheme);
  CHECK(groups.form.scales.shape == Shape{2, 2});
  CHECK(groups.scales[1] == doctest::Approx(2 / 7.5));
}

TEST_CASE("torchao_int8: a byte a code, 4 bits as well, zero points beside them") {
  Scheme scheme{.layout = QuantizedLayout::torchao_int8, .group = 4, .choice = ScaleChoice::range};
  const Quantized plain = quantized({15, -15, 2, -2}, {1, 4}, scheme);
  CHECK(plain.codes == std::vector<int>{7, 256 - 8, 1, 255});
  CHECK_FALSE(plain.form.zero_points);
  scheme.zero_points = true;
  const Quantized shifted = quantized({-5, 10, 0, 3}, {1, 4}, scheme);  // 15 steps of 1
  CHECK(shifted.scales == std::vector<float>{1});
  CHECK(shifted.zero_points == std::vector<int>{256 + 5 - 8});
  CHECK(shifted.codes == std::vector<int>{256 - 8, 7, 256 + 5 - 8, 0});
  CHECK(shifted.form.zero_points->dtype == Dtype::i8);
}

TEST_CASE("onnx_matmul_nbits: blocks of bytes, the last one filled up with zeros") {
  std::vector<float> values(20, 0.0F);
  values[0] = 15;
  values[1] = -4;
  values[16] = -7.5F;
  values[17] = 2;
  const Quantized q = quantized(
      values, {1, 20},
      {.layout = QuantizedLayout::onnx_matmul_nbits, .group = 16, .choice = ScaleChoice::range});
  CHECK(q.form.codes.shape == Shape{1, 2, 8});
  CHECK(q.form.codes.dtype == Dtype::u8);
  CHECK(q.form.scales.shape == Shape{1, 2});
  CHECK(q.codes == std::vector<int>{15 | 6 << 4, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88,  //
                                    0 | 10 << 4, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88});
}

TEST_CASE("onnx_matmul_nbits: zero points of 4 bits are packed like codes, from a new byte a row") {
  std::vector<float> values(2 * 48, 0.0F);
  for (std::size_t group = 0; group < 6; ++group) {
    values[group * 16] = -static_cast<float>(group);
    values[group * 16 + 1] = 15 - static_cast<float>(group);
  }
  Scheme scheme{.layout = QuantizedLayout::onnx_matmul_nbits,
                .group = 16,
                .zero_points = true,
                .choice = ScaleChoice::range};
  const Quantized q = quantized(values, {2, 48}, scheme);
  CHECK(q.form.zero_points->shape == Shape{2, 2});
  CHECK(q.zero_points == std::vector<int>{0 | 1 << 4, 2, 3 | 4 << 4, 5});
  CHECK(q.scales == std::vector<float>(6, 1.0F));
  CHECK(q.codes[8] == (0 | 15 << 4));  // -1 and 14 about a zero point of 1
  scheme.bits = 8;
  const Quantized wide = quantized(values, {2, 48}, scheme);
  CHECK(wide.form.codes.shape == Shape{2, 3, 16});
  CHECK(wide.form.zero_points->shape == Shape{2, 3});
  CHECK(wide.zero_points[3] == 3 * 17);  // 255 steps for a range of 15
  CHECK(wide.codes[0] == 0);
  CHECK(wide.codes[1] == 255);
}

TEST_CASE("onnx_gather_block_quantized: the bytes of onnx_matmul_nbits, flat, nothing filled up") {
  const std::vector<float> values = normal_values(3 * 64, 5);
  Scheme scheme{.layout = QuantizedLayout::onnx_matmul_nbits, .group = 32, .zero_points = true};
  const Quantized blocks = quantized(values, {3, 64}, scheme);
  scheme.layout = QuantizedLayout::onnx_gather_block_quantized;
  const Quantized flat = quantized(values, {3, 64}, scheme);
  CHECK(flat.form.codes.shape == Shape{3, 32});
  CHECK(flat.codes == blocks.codes);
  CHECK(flat.scales == blocks.scales);
  CHECK(flat.zero_points == blocks.zero_points);
  const Quantized odd = quantized(normal_values(3 * 40, 5), {3, 40}, scheme);
  CHECK(odd.form.codes.shape == Shape{3, 20});
  CHECK(odd.form.scales.shape == Shape{3, 2});
}

TEST_CASE("rows are all axes but the last: the experts of a layer") {
  const std::vector<float> values = normal_values(2 * 3 * 32, 6);
  const Scheme scheme{.layout = QuantizedLayout::onnx_gather_block_quantized, .group = 32};
  const Quantized experts = quantized(values, {2, 3, 32}, scheme);
  CHECK(experts.form.codes.shape == Shape{2, 3, 16});
  CHECK(experts.form.scales.shape == Shape{2, 3, 1});
  CHECK(experts.codes == quantized(values, {6, 32}, scheme).codes);
}

TEST_CASE(
    "every layout gives back weights to within half a step, and a clipped end to within one") {
  for (const LayoutFacts& row : kLayouts) {
    for (const int bits : {4, 8}) {
      const Scheme scheme{.layout = row.layout,
                          .bits = bits,
                          .group = row.groups == Groups::row ? 0 : 32,
                          .choice = ScaleChoice::range};
      if (!packing(scheme)) continue;
      const std::vector<float> values = normal_values(8 * 96, bits);
      const Quantized q = quantized(values, {8, 96}, scheme);
      const std::vector<float> back = dequantized(q);
      const auto group = static_cast<std::size_t>(q.form.group);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const float step = std::abs(q.scales[i / 96 * (96 / group) + i % 96 / group]);
        CAPTURE(row.name);
        CHECK(std::abs(values[i] - back[i]) <= step * 0.55F);  // the scale of bf16 is rounded
      }
      CHECK(q.report.weight_error == doctest::Approx(relative_error(values, back)).epsilon(1e-4));
    }
  }
}

TEST_CASE("f16, bf16 and f64 give what they give when they are converted to f32 first") {
  const std::vector<float> values = normal_values(16 * 64, 7);
  const Scheme scheme{.layout = QuantizedLayout::xnnpack_qbint4, .group = 32};
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f64}) {
    std::vector<std::byte> narrow(values.size() * byte_size(dtype));
    convert(Dtype::f32, std::as_bytes(std::span(values)), dtype, narrow);
    std::vector<float> wide(values.size());
    convert(dtype, narrow, Dtype::f32, std::as_writable_bytes(std::span(wide)));
    const Quantized direct =
        quantized({.name = "w", .dtype = dtype, .shape = {16, 64}, .bytes = narrow}, scheme);
    const Quantized converted = quantized(wide, {16, 64}, scheme);
    CHECK(direct.codes == converted.codes);
    CHECK(direct.scales == converted.scales);
  }
}

TEST_CASE("neither the size of pieces nor the number of threads changes a byte or the report") {
  const std::vector<float> values = normal_values(37 * 96, 8);
  std::vector<float> energies(96);
  for (std::size_t i = 0; i < energies.size(); ++i) energies[i] = static_cast<float>(i % 7);
  for (const QuantizedLayout layout :
       {QuantizedLayout::xnnpack_qbint4, QuantizedLayout::onnx_matmul_nbits}) {
    const Scheme scheme{
        .layout = layout, .group = 32, .zero_points = layout != QuantizedLayout::xnnpack_qbint4};
    const Quantized whole =
        quantized(values, {37, 96}, scheme, {.input_energies = energies, .threads = 1});
    for (const std::size_t bytes : {1, 500, 1000, 5000, 100000}) {
      for (const std::size_t threads : {1, 2, 5}) {
        const Quantized pieces =
            quantized(values, {37, 96}, scheme,
                      {.input_energies = energies, .piece_bytes = bytes, .threads = threads});
        CHECK(pieces.codes == whole.codes);
        CHECK(pieces.scales == whole.scales);
        CHECK(pieces.zero_points == whole.zero_points);
        CHECK(pieces.report.weight_error == whole.report.weight_error);
        CHECK(*pieces.report.output_error == *whole.report.output_error);
      }
    }
  }
}

TEST_CASE("with what is known of inputs neither pieces nor threads change a byte or the report") {
  const std::vector<float> values = normal_values(37 * 80, 8);
  const CorrelatedInputs inputs(300, 80);
  const InputFacts facts = inputs.facts();
  const Scheme scheme{
      .layout = QuantizedLayout::onnx_matmul_nbits, .group = 32, .zero_points = true};
  const Quantized whole = quantized(values, {37, 80}, scheme, {.inputs = &facts, .threads = 1});
  CHECK(whole.report.weight_error == doctest::Approx(relative_error(values, dequantized(whole))));
  CHECK(whole.codes !=
        quantized(values, {37, 80}, scheme, {.input_energies = inputs.energies}).codes);
  for (const std::size_t bytes : {1, 1000, 5000}) {
    for (const std::size_t threads : {1, 3}) {
      const Quantized pieces = quantized(
          values, {37, 80}, scheme, {.inputs = &facts, .piece_bytes = bytes, .threads = threads});
      CHECK(pieces.codes == whole.codes);
      CHECK(pieces.scales == whole.scales);
      CHECK(*pieces.report.output_error == *whole.report.output_error);
    }
  }
}

TEST_CASE("codes and scales are the same where nobody asks for the error") {
  const std::vector<float> values = normal_values(7 * 75, 3);
  const std::vector<float> energies(75, 0.5F);
  for (const bool search : {false, true}) {
    const Scheme scheme{.layout = QuantizedLayout::onnx_matmul_nbits,
                        .bits = 4,
                        .group = 32,
                        .choice = search ? ScaleChoice::search : ScaleChoice::range};
    for (const std::span<const float> given : {std::span<const float>(), std::span(energies)}) {
      const Quantized whole = quantized(values, {7, 75}, scheme, {.input_energies = given});
      const Quantized quick =
          quantized(values, {7, 75}, scheme, {.input_energies = given, .measures_error = false});
      CHECK(quick.codes == whole.codes);
      CHECK(quick.scales == whole.scales);
      CHECK(quick.report.weight_error == 0);
    }
  }
}

TEST_CASE("a sink that is left out changes nothing of the others") {
  const std::vector<float> values = normal_values(4 * 32, 9);
  const Weight weight = weight_of(values, {4, 32});
  const Scheme scheme{
      .layout = QuantizedLayout::onnx_matmul_nbits, .group = 16, .zero_points = true};
  const Quantized all = quantized(values, {4, 32}, scheme);
  MemorySink scales;
  quantize(weight, scheme, {.scales = &scales});
  CHECK(scales.bytes().size() == all.form.scales.byte_count());
  MemorySink codes;
  quantize(weight, scheme, {.codes = &codes});
  CHECK(bytes_of(codes.bytes()) == all.codes);
}

TEST_CASE("weights come from a mapped file, and from a function") {
  const ScratchFolder folder;
  const std::vector<float> values = normal_values(8 * 64, 10);
  const std::span bytes = std::as_bytes(std::span(values));
  AtomicFile out(folder.path / "weights.bin");
  out.write("odd");  // so that nothing is aligned
  out.write(bytes);
  out.commit();
  const auto file = std::make_shared<const MappedFile>(MappedFile::open(out.path()));
  const Scheme scheme{.layout = QuantizedLayout::executorch_embedding_byte, .bits = 8};
  const Quantized direct = quantized(values, {8, 64}, scheme);
  const Weight mapped{.name = "w",
                      .shape = {8, 64},
                      .bytes = file->bytes().subspan(3),
                      .file = file,
                      .file_offset = 3};
  CHECK(quantized(mapped, scheme).codes == direct.codes);
  const Weight made{
      .name = "w", .shape = {8, 64}, .read = [&] { return Contents{bytes, nullptr}; }};
  CHECK(quantized(made, scheme).codes == direct.codes);
}

TEST_CASE("an error of the sink is thrown, and nothing is written after it") {
  class FullDisk final : public Sink {
   protected:
    void append(std::span<const std::byte> bytes) override {
      if (written() + bytes.size() > 100) throw std::runtime_error("disk full");
    }
  };
  const std::vector<float> values = normal_values(64 * 32, 11);
  FullDisk sink;
  const Scheme scheme{.layout = QuantizedLayout::xnnpack_qcint4};
  CHECK_THROWS_WITH(quantize(weight_of(values, {64, 32}), scheme, {.codes = &sink},
                             {.piece_bytes = 128, .threads = 3}),
                    "disk full");
  CHECK(sink.written() == 96);
}

TEST_CASE("infinities and what is not a number are refused at the first place, with the name") {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
      std::vector<float> values = normal_values(16 * 32, 12);
      values[5 * 32 + 3] = bad;
      values[9 * 32 + 1] = bad;
      std::vector<std::byte> bytes(values.size() * byte_size(dtype));
      convert(Dtype::f32, std::as_bytes(std::span(values)), dtype, bytes);
      const Weight weight{.name = "layers.0.up", .dtype = dtype, .shape = {16, 32}, .bytes = bytes};
      const Scheme scheme{.layout = QuantizedLayout::xnnpack_qcint8, .bits = 8};
      CHECK_THROWS_WITH_AS(
          quantize(weight, scheme, {}, {.piece_bytes = 1, .threads = 4}),
          doctest::Contains("layers.0.up [16, 32] cannot be quantized: row 5, column 3 is "),
          ExportError);
    }
  }
}

TEST_CASE("the report weighs errors with the energies of the inputs") {
  const std::vector<float> values = normal_values(8 * 64, 13);
  std::vector<float> energies(64, 0.0F);
  energies[3] = 4e30F;  // only their ratios count
  energies[40] = 1e30F;
  const Quantized q =
      quantized(values, {8, 64}, {.layout = QuantizedLayout::xnnpack_qbint4, .group = 32},
                {.input_energies = energies});
  const std::vector<float> back = dequantized(q);
  double error = 0;
  double total = 0;
  for (std::size_t row = 0; row < 8; ++row) {
    for (const auto& [column, energy] : {std::pair<std::size_t, double>{3, 4}, {40, 1}}) {
      const double value = values[row * 64 + column];
      error += energy * std::pow(value - back[row * 64 + column], 2);
      total += energy * value * value;
    }
  }
  CHECK(*q.report.output_error == doctest::Approx(std::sqrt(error / total)).epsilon(1e-3));
  CHECK(*q.report.output_error < 0.02);  // one column a group counts, and it is met nearly exactly
  CHECK(q.report.weight_error > 0.05);
  energies.pop_back();
  CHECK_THROWS_WITH_AS(
      quantized(values, {8, 64}, {.layout = QuantizedLayout::xnnpack_qbint4, .group = 32},
                {.input_energies = energies}),
      doctest::Contains("not one number of zero or more a column"), ExportError);
}

}  // namespace
}  // namespace modelport::weights
