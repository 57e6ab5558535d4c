#include "backends/onnx/tensor_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "backends/onnx/proto.h"
#include "base/error.h"
#include "base/json.h"

namespace modelport::onnx {

using protozero::data_view;
using protozero::pbf_message;

void bad(std::string what) {
  throw ExportError({.code = Code::bad_file,
                     .what = std::move(what),
                     .ways_out = {"export or download the file again"}});
}

std::pair<std::string, std::string> entry_of(const data_view& data) {
  std::pair<std::string, std::string> entry;
  pbf_message<proto::Entry> reader(data);
  while (reader.next()) {
    if (reader.tag_and_type() == bytes_field(proto::Entry::key)) {
      entry.first = text(reader.get_view());
    } else if (reader.tag_and_type() == bytes_field(proto::Entry::value)) {
      entry.second = text(reader.get_view());
    } else {
      reader.skip();
    }
  }
  return entry;
}

std::string dtype_name(std::int32_t number) {
  static constexpr std::array<std::string_view, 24> kNames{
      "",       "f32",    "u8",         "i8",     "u16",        "i16", "i32", "i64",
      "string", "bool",   "f16",        "f64",    "u32",        "u64", "c64", "c128",
      "bf16",   "f8e4m3", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",  "i4",  "f4e2m1"};
  if (number < 0 || static_cast<std::size_t>(number) >= kNames.size())
    return fmt::format("type {}", number);
  return std::string(kNames[static_cast<std::size_t>(number)]);
}

namespace {

/// Bits of one element; 0 where that is not known.
std::uint64_t dtype_bits(std::int32_t number) {
  static constexpr std::array<std::uint8_t, 24> kBits{0,  32, 8,  8,   16, 16, 32, 64, 0, 8, 16, 64,
                                                      32, 64, 64, 128, 16, 8,  8,  8,  8, 4, 4,  4};
  return number < 0 || static_cast<std::size_t>(number) >= kBits.size()
             ? 0
             : kBits[static_cast<std::size_t>(number)];
}

std::uint64_t byte_count(const WeightSummary& weight, std::int32_t dtype) {
  std::uint64_t count = dtype_bits(dtype);
  for (const std::int64_t size : weight.shape) {
    if (size < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(size), &count))
      bad(fmt::format("the weight {} has an impossible shape", quote_text(weight.name)));
  }
  return count / 8 + (count % 8 != 0 ? 1 : 0);
}

std::uint64_t number_of(const std::string& digits, const WeightSummary& weight) {
  std::uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || stopped != end) {
    bad(fmt::format("the place of the weight {} in its file is {}", quote_text(weight.name),
                    quote_text(digits)));
  }
  return number;
}

/// Where a weight lies outside the model: one entry of what the file says about it.
void read_place(const data_view& data, WeightSummary& weight) {
  const auto [key, value] = entry_of(data);
  if (key == "location") weight.file = value;
  if (key == "offset") weight.offset = number_of(value, weight);
  if (key == "length") number_of(value, weight);
}

}  // namespace

WeightSummary weight_of(const data_view& data, const char* start,
                        std::set<std::string>& data_files) {
  WeightSummary weight;
  data_view inside;
  std::int32_t dtype = 0;
  pbf_message<proto::Tensor> reader(data);
  while (reader.next()) {
    const std::uint32_t field = reader.tag_and_type();
    if (field == bytes_field(proto::Tensor::dims)) {
      for (const std::int64_t size : reader.get_packed_int64()) weight.shape.push_back(size);
    } else if (field == number_field(proto::Tensor::dims)) {
      weight.shape.push_back(reader.get_int64());
    } else if (field == number_field(proto::Tensor::data_type)) {
      dtype = reader.get_int32();
    } else if (field == bytes_field(proto::Tensor::raw_data)) {
      inside = reader.get_view();
    } else if (field == bytes_field(proto::Tensor::name)) {
      weight.name = text(reader.get_view());
    } else if (field == bytes_field(proto::Tensor::external_data)) {
      read_place(reader.get_view(), weight);
      // Of several locations, readers may take any.
      if (!weight.file.empty()) data_files.insert(weight.file);
    } else {
      reader.skip();
    }
  }
  weight.dtype = dtype_name(dtype);
  weight.bytes = byte_count(weight, dtype);
  if (weight.file.empty() && inside.size() == weight.bytes && weight.bytes > 0)
    weight.offset = static_cast<std::uint64_t>(inside.data() - start);
  std::uint64_t end = 0;
  if (__builtin_add_overflow(weight.offset, weight.bytes, &end))
    bad(fmt::format("the weight {} lies beyond the end of any file", quote_text(weight.name)));
  return weight;
}

}  // namespace modelport::onnx
