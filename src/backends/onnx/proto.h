// The numbers of ONNX's protobuf schema (onnx.proto), as far as a writer needs them.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace modelport::onnx::proto {

enum class Model : std::uint32_t {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  graph = 7,
  opset_import = 8,
  metadata_props = 14
};
enum class OperatorSet : std::uint32_t { domain = 1, version = 2 };
enum class Entry : std::uint32_t { key = 1, value = 2 };
enum class Graph : std::uint32_t {
  node = 1,
  name = 2,
  initializer = 5,
  input = 11,
  output = 12,
  value_info = 13
};
enum class Node : std::uint32_t {
  input = 1,
  output = 2,
  name = 3,
  op_type = 4,
  attribute = 5,
  doc_string = 6,
  domain = 7,
  metadata_props = 9
};
enum class Attribute : std::uint32_t {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  type = 20
};
enum class AttributeType : std::int32_t {
  float_number = 1,
  integer = 2,
  string = 3,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8
};
enum class Tensor : std::uint32_t {
  dims = 1,
  data_type = 2,
  name = 8,
  raw_data = 9,
  external_data = 13,
  data_location = 14
};
enum class ValueInfo : std::uint32_t { name = 1, type = 2 };
enum class Type : std::uint32_t { tensor_type = 1 };
enum class TensorType : std::uint32_t { elem_type = 1, shape = 2 };
enum class Shape : std::uint32_t { dim = 1 };
enum class Dimension : std::uint32_t { value = 1, param = 2 };

constexpr std::int32_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return 11;
    case Dtype::f32:
      return 1;
    case Dtype::f16:
      return 10;
    case Dtype::bf16:
      return 16;
    case Dtype::f8e4m3:
      return 17;
    case Dtype::f8e5m2:
      return 19;
    case Dtype::i64:
      return 7;
    case Dtype::i32:
      return 6;
    case Dtype::i16:
      return 5;
    case Dtype::i8:
      return 3;
    case Dtype::u64:
      return 13;
    case Dtype::u32:
      return 12;
    case Dtype::u16:
      return 4;
    case Dtype::u8:
      return 2;
    case Dtype::boolean:
      return 9;
    case Dtype::c64:
      return 14;
    case Dtype::c128:
      return 15;
  }
  __builtin_unreachable();
}

/// The version of the file format that an opset came with; older readers then know both.
constexpr std::int64_t ir_version(int opset) {
  return opset <= 18   ? 8
         : opset <= 20 ? 9
         : opset <= 22 ? 10
         : opset <= 23 ? 11
         : opset <= 24 ? 12
         : opset <= 27 ? 13
                       : 14;
}

}  // namespace modelport::onnx::proto
