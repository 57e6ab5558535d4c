// Tensors made after the pattern of another one.
#include <array>

#include "ops/decompositions/create.h"
#include "ops/onnx/create.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results like(Call& call) {
  return one(call.dtype("dtype").value_or(call.dtype_of("self")), call.shape("self"));
}

Results new_of_size(Call& call) {
  return one(call.dtype("dtype").value_or(call.dtype_of("self")), call.ints("size"));
}

constexpr std::array kCreateLikeOps{
    OpDef{.name = "aten.empty_like",
          .schema =
              "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::empty),
          .samples = "f32[a, b]; i64[a]; f16[a, b], dtype=i64; bool[]"},
    OpDef{.name = "aten.fill.Scalar",
          .schema = "(Tensor self, Scalar value) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::full),
          .samples = "f32[a, b], 2; i64[a], 1.5; bool[], True"},
    OpDef{.name = "aten.fill.Tensor",
          .schema = "(Tensor self, Tensor value) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::full),
          .samples = "f32[a, b], f32[]; i64[a], f32[]; f16[a], 0"},
    OpDef{.name = "aten.full_like",
          .schema = "(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                    "memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::full),
          .samples = "f32[a, b], 2; i64[a], 1.5; f16[a, b], 1, dtype=i64; bool[], True"},
    OpDef{.name = "aten.new_empty",
          .schema = "(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = new_of_size,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::empty),
          .samples = "f32[a], [a, b]; i64[], [b]; f16[a, b], [2], dtype=i64; bool[a], []"},
    OpDef{.name = "aten.new_empty_strided",
          .schema = "(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
                    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = new_of_size,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::empty),
          .samples = "f32[a], [a, b], [b, 1]; i64[], [b], [1]"},
    OpDef{.name = "aten.new_full",
          .schema = "(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, "
                    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = new_of_size,
          .onnx = custom(onnx::full),
          .executorch = decompose(parts::filled),
          .samples = "f32[a], [a, b], 1; i64[], [b], 1.5; f16[a, b], [2], 1, dtype=i64"},
    OpDef{.name = "aten.new_ones",
          .schema = "(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = new_of_size,
          .onnx = custom(onnx::ones),
          .executorch = decompose(parts::ones),
          .samples = "f32[a], [a, b]; i64[], [b]; f16[a, b], [2], dtype=i64; bool[a], []"},
    OpDef{.name = "aten.new_zeros",
          .schema = "(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = new_of_size,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::zeros),
          .samples = "f32[a], [a, b]; i64[], [b]; f16[a, b], [2], dtype=i64; bool[a], []"},
    OpDef{.name = "aten.ones_like",
          .schema =
              "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::ones),
          .executorch = decompose(parts::ones),
          .samples = "f32[a, b]; i64[a]; f16[a, b], dtype=i64; bool[]"},
    OpDef{.name = "aten.zero",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::zeros),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.zeros_like",
          .schema =
              "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::zeros),
          .samples = "f32[a, b]; i64[a]; f16[a, b], dtype=i64; bool[]"},
};
static_assert(first_bad_row(kCreateLikeOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> create_like_ops() { return kCreateLikeOps; }

}  // namespace modelport::ops
