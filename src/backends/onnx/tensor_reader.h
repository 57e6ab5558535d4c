// Tensors in the protobuf of an ONNX file: what they say of themselves, never their bytes.
#pragma once

#include <cstdint>
#include <protozero/pbf_message.hpp>
#include <set>
#include <string>
#include <utility>

#include "backends/onnx/reader.h"

namespace modelport::onnx {

/// A file that is no model; throws ExportError.
[[noreturn]] void bad(std::string what);

inline std::string text(const protozero::data_view& view) { return {view.data(), view.size()}; }

constexpr std::uint32_t bytes_field(auto field) {
  return protozero::tag_and_type(static_cast<std::uint32_t>(field),
                                 protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number_field(auto field) {
  return protozero::tag_and_type(static_cast<std::uint32_t>(field),
                                 protozero::pbf_wire_type::varint);
}

/// One row of a map, as ONNX writes maps.
std::pair<std::string, std::string> entry_of(const protozero::data_view& data);

/// TensorProto.DataType by number, as we write types.
std::string dtype_name(std::int32_t number);

/// A TensorProto of the file that begins at `start`; the files that it names go to `data_files` as
/// well.
WeightSummary weight_of(const protozero::data_view& data, const char* start,
                        std::set<std::string>& data_files);

}  // namespace modelport::onnx
