// Changes of dtype, and copies.

#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/pointwise.h"
#include "ops/executorch/guarded.h"
#include "ops/onnx/lower.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results cast(Call& call) {
  return one(call.dtype("dtype").value_or(call.dtype_of("self")), call.shape("self"));
}

Results cast_as(Call& call) { return one(call.dtype_of("other"), call.shape("self")); }

// The source gives the values, the destination the type.
Results copy(Call& call) {
  if (call.is_tensor("src")) broadcast(call, call.shape("self"), call.shape("src"));
  return {call.tensor("self")};
}

Values onnx_cast(onnx::Lower& l) { return {l.in("self", l.result().dtype)}; }

Values onnx_copy(onnx::Lower& l) {
  return {l.expand(l.in("src", l.result().dtype), l.result().shape)};
}

constexpr std::array kCastOps{
    OpDef{.name = "aten._to_copy",
          .schema = "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? "
                    "memory_format=None) -> Tensor",
          .infer = cast,
          .handling = Handling::cast,
          .onnx = custom(onnx_cast),
          .executorch = custom(executorch::cast),
          .pairs = decompose(parts::pairs_cast),
          .samples = "f32[a, b], dtype=f16; i64[a]; bool[], dtype=i64"},
    OpDef{.name = "aten.clone",
          .schema = "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::same),
          .pairs = decompose(parts::pairs_as_they_are),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.contiguous",
          .schema = "(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
          .infer = like_self,
          .recording = Recording::dense_or_copy,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::same),
          .pairs = decompose(parts::pairs_as_they_are),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.copy",
          .schema = "(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
          .infer = copy,
          .onnx = custom(onnx_copy),
          .samples = "f32[a, b], f32[b]; f16[a], f64[]; i64[a, b], f32[a, 1]"},
    OpDef{.name = "aten.to.device",
          .schema = "(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, "
                    "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
          .infer = cast,
          .handling = Handling::cast,
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::cast_to_result),
          .samples = "f32[a, b], 'cpu', f16; i64[a], 'cpu', i64"},
    OpDef{.name = "aten.to.dtype",
          .schema = "(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
                    "MemoryFormat? memory_format=None) -> Tensor(a)",
          .infer = cast,
          .handling = Handling::cast,
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::cast_to_result),
          .pairs = decompose(parts::pairs_cast),
          .samples = "f32[a, b], f16; i64[a], bool; f32[], f32, copy=True"},
    OpDef{.name = "aten.to.dtype_layout",
          .schema = "(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
                    "MemoryFormat? memory_format=None) -> Tensor(a)",
          .infer = cast,
          .handling = Handling::cast,
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::cast_to_result),
          .samples = "f32[a, b], dtype=f16; i64[a]; bool[], dtype=i64"},
    OpDef{.name = "aten.to.other",
          .schema = "(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
                    "MemoryFormat? memory_format=None) -> Tensor(a)",
          .infer = cast_as,
          .handling = Handling::cast,
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::cast_to_result),
          .samples = "f32[a, b], f16[]; i64[a], bool[b]"},
    OpDef{.name = "aten.type_as",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = cast_as,
          .may_give_back = true,
          .onnx = custom(onnx_cast),
          .executorch = decompose(parts::cast_to_result),
          .samples = "f32[a, b], f16[]; i64[a], bool[b]"},
};
static_assert(first_bad_row(kCastOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> cast_ops() { return kCastOps; }

}  // namespace modelport::ops
