// Read off onnxruntime 1.31: what its CPU provider has no kernel for.
#include "ops/onnx/kernels.h"

#include <algorithm>
#include <array>

namespace modelport::ops::onnx {
namespace {

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& ops, std::string_view op) {
  return std::ranges::find(ops, op) != ops.end();
}

// These work on every type: they move elements, or are there for bools and bits.
constexpr std::array<std::string_view, 14> kAnyType{
    "And",   "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "GatherElements", "IsInf",
    "IsNaN", "Not",        "Or",         "Reshape",   "Slice",      "Transpose",      "Xor"};
constexpr std::array<std::string_view, 19> kSingle{
    "Acos", "Acosh",       "Asin",      "Asinh",     "Atan", "Atanh", "Celu", "Cosh", "Elu", "Erf",
    "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "Selu", "Sinh", "Tan"};
constexpr std::array<std::string_view, 3> kSingleToo{"Softplus", "Softsign", "Swish"};
constexpr std::array<std::string_view, 4> kBytes{"ReduceMax", "ReduceMin", "Where", "Expand"};

}  // namespace

Dtype kernel_dtype(std::string_view op, Dtype dtype) {
  if (contains(kAnyType, op)) return dtype;
  switch (dtype) {
    case Dtype::bf16:
    case Dtype::f8e4m3:
    case Dtype::f8e5m2:
      return Dtype::f32;
    case Dtype::f16:
      return op == "Erf" ? Dtype::f32 : dtype;  // a tenth off near 0 on aarch64
    case Dtype::f64:
      return contains(kSingle, op) || contains(kSingleToo, op) ? Dtype::f32 : dtype;
    case Dtype::boolean:
      if (op == "Expand" || op == "Equal") return dtype;
      return contains(kBytes, op) ? Dtype::u8 : Dtype::i32;
    case Dtype::i8:
    case Dtype::u8:
      return contains(kBytes, op) ? dtype : Dtype::i32;
    case Dtype::i16:
      return op == "Expand" ? dtype : Dtype::i32;
    case Dtype::u16:
      return Dtype::i32;
    case Dtype::u32:
    case Dtype::u64:
      return Dtype::i64;
    default:
      return dtype;
  }
}

}  // namespace modelport::ops::onnx
