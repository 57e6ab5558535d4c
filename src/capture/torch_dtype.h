// Our dtypes and torch's, one to one.
#pragma once

#include <c10/core/ScalarType.h>

#include "base/dtype.h"
#include "base/error.h"

namespace modelport::capture {

inline c10::ScalarType to_torch(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return c10::ScalarType::Double;
    case Dtype::f32:
      return c10::ScalarType::Float;
    case Dtype::f16:
      return c10::ScalarType::Half;
    case Dtype::bf16:
      return c10::ScalarType::BFloat16;
    case Dtype::f8e4m3:
      return c10::ScalarType::Float8_e4m3fn;
    case Dtype::f8e5m2:
      return c10::ScalarType::Float8_e5m2;
    case Dtype::i64:
      return c10::ScalarType::Long;
    case Dtype::i32:
      return c10::ScalarType::Int;
    case Dtype::i16:
      return c10::ScalarType::Short;
    case Dtype::i8:
      return c10::ScalarType::Char;
    case Dtype::u64:
      return c10::ScalarType::UInt64;
    case Dtype::u32:
      return c10::ScalarType::UInt32;
    case Dtype::u16:
      return c10::ScalarType::UInt16;
    case Dtype::u8:
      return c10::ScalarType::Byte;
    case Dtype::boolean:
      return c10::ScalarType::Bool;
    case Dtype::c64:
      return c10::ScalarType::ComplexFloat;
    case Dtype::c128:
      return c10::ScalarType::ComplexDouble;
  }
  throw InternalError("a dtype without a torch type");
}

inline Dtype from_torch(c10::ScalarType type) {
  for (const DtypeFacts& row : kDtypes) {
    if (to_torch(row.dtype) == type) return row.dtype;
  }
  throw ExportError(Diagnostic{
      .code = Code::bad_input,
      .what = std::string("tensors of type ") + c10::toString(type) + " are not supported",
      .ways_out = {"convert the tensor with .to(torch.float32)"}});
}

}  // namespace modelport::capture
