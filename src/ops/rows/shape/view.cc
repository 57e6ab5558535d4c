// Views that keep every element: sizes regrouped, expanded, or axes of size 1 added and dropped.
#include "ops/executorch/view.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "ops/decompositions/shape.h"
#include "ops/onnx/shape.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/shape.h"

namespace modelport::ops {
namespace {

Results view(Call& call) {
  return one(call.dtype_of("self"), fill_minus_one(call, call.ints("size"), call.shape("self")));
}

Results reshape(Call& call) {
  return one(call.dtype_of("self"), fill_minus_one(call, call.ints("shape"), call.shape("self")));
}

Results shaped_like_other(Call& call) {
  return one(call.dtype_of("self"), fill_minus_one(call, call.shape("other"), call.shape("self")));
}

Shape expand_to(Call& call, const Shape& from, const Shape& to) {
  call.require(to.size() >= from.size(), "expand to fewer axes than there are");
  Shape result = to;
  const std::size_t added = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool kept = to[added + i] == Int(-1);
    result[added + i] = kept ? from[i] : expanded(call, from[i], to[added + i]);
  }
  return result;
}

Results expand(Call& call) {
  return one(call.dtype_of("self"), expand_to(call, call.shape("self"), call.ints("size")));
}

Results expand_as(Call& call) {
  return one(call.dtype_of("self"), expand_to(call, call.shape("self"), call.shape("other")));
}

Results broadcast_tensors(Call& call) {
  const std::vector<const ir::TensorType*> operands = all_tensors(call, "tensors");
  Shape common;
  for (const ir::TensorType* operand : operands) common = broadcast(call, common, operand->shape);
  Results results;
  for (const ir::TensorType* operand : operands) {
    results.push_back(ir::TensorType{operand->dtype, common});
  }
  return results;
}

Results flatten(Call& call) {
  const Shape& shape = call.shape("self");
  const std::int64_t first = axis_of(call, "start_dim", call.rank("self"));
  const std::int64_t last = axis_of(call, "end_dim", call.rank("self"));
  call.require(first <= last, "flatten from an axis to one before it");
  if (shape.empty()) return one(call.dtype_of("self"), {1});
  Int size = 1;
  for (std::int64_t i = first; i <= last; ++i) size *= shape[i];
  Shape result = leading(shape, first);
  result.push_back(size);
  return one(call.dtype_of("self"), joined(std::move(result), from(shape, last + 1)));
}

Results ravel(Call& call) { return one(call.dtype_of("self"), {numel(call.shape("self"))}); }

Results unflatten(Call& call) {
  const Shape& shape = call.shape("self");
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const Shape sizes = fill_minus_one(call, call.ints("sizes"), {size_at(call, shape, axis)});
  return one(call.dtype_of("self"),
             joined(joined(leading(shape, axis), sizes), from(shape, axis + 1)));
}

Results unsqueeze(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self") + 1);
  return one(call.dtype_of("self"), with_axis(call.shape("self"), axis, 1));
}

Results squeeze_axes(Call& call, const std::vector<std::int64_t>& axes) {
  Shape result = call.shape("self");
  for (std::int64_t axis = call.rank("self") - 1; axis >= 0; --axis) {
    const bool asked = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (asked && call.equal(result[axis], 1)) result.erase(result.begin() + axis);
  }
  return one(call.dtype_of("self"), std::move(result));
}

Results squeeze(Call& call) {
  std::vector<std::int64_t> axes(call.shape("self").size());
  std::iota(axes.begin(), axes.end(), 0);
  return squeeze_axes(call, axes);
}

Results squeeze_listed(Call& call) {
  return squeeze_axes(call, axis_list(call, "dim", call.rank("self")));
}

Results atleast(Call& call) {
  Shape result = call.shape("self");
  const std::size_t rank = call.op().name[13] - '0';  // aten.atleast_2d
  if (result.empty()) result.push_back(1);
  if (rank >= 2 && result.size() == 1) result.insert(result.begin(), 1);
  if (rank == 3 && result.size() == 2) result.push_back(1);
  return one(call.dtype_of("self"), std::move(result));
}

Results view_as_real(Call& call) {
  const Dtype parts = call.dtype_of("self") == Dtype::c128 ? Dtype::f64 : Dtype::f32;
  return one(parts, joined(call.shape("self"), {2}));
}

Results view_as_complex(Call& call) {
  const Dtype whole = call.dtype_of("self") == Dtype::f64 ? Dtype::c128 : Dtype::c64;
  const std::int64_t last = call.rank("self") - 1;
  call.require(last >= 0 && call.equal(call.shape("self")[last], 2),
               "view_as_complex needs a last axis of size 2");
  return one(whole, without_axis(call.shape("self"), last));
}

// The bits under another type: the last axis grows or shrinks with the width of an element.
Results view_dtype(Call& call) {
  const Dtype dtype = call.dtype("dtype").value();
  const auto had = static_cast<std::int64_t>(byte_size(call.dtype_of("self")));
  const auto has = static_cast<std::int64_t>(byte_size(dtype));
  if (had == has) return one(dtype, call.shape("self"));
  const std::int64_t last = call.rank("self") - 1;
  call.require(last >= 0, "view under a type of another width needs an axis");
  const Int size = had > has ? call.shape("self")[last] * (had / has)
                             : divided(call, call.shape("self")[last], has / had);
  return one(dtype, with_size(call.shape("self"), last, size));
}

constexpr std::array kViewOps{
    OpDef{.name = "aten._reshape_alias",
          .schema = "(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)",
          .infer = view,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[a, 6], [a, 2, 3], [6, 3, 1]; f32[a, b, 6], [a*b, 6], [6, 1]"},
    OpDef{.name = "aten._reshape_copy",
          .schema = "(Tensor self, SymInt[] size) -> Tensor",
          .infer = view,
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[a, b, 6], [a*b, 6]; f32[a*b, 6], [a, b, 6]"},
    OpDef{.name = "aten._unsafe_view",
          .schema = "(Tensor self, SymInt[] size) -> Tensor",
          .infer = view,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .samples = "f32[a, b, 6], [a*b, 6]; f32[a*b, 6], [a, b, 6]"},
    OpDef{.name = "aten.alias",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .handling = Handling::identity,
          .onnx = custom(onnx::same),
          .executorch = custom(executorch::same),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.alias_copy",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::same),
          .executorch = custom(executorch::same),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.atleast_1d",
          .schema = "(Tensor self) -> Tensor",
          .infer = atleast,
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[]; f32[a, b]"},
    OpDef{.name = "aten.atleast_2d",
          .schema = "(Tensor self) -> Tensor",
          .infer = atleast,
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[]; f32[a]; f32[a, b]"},
    OpDef{.name = "aten.atleast_3d",
          .schema = "(Tensor self) -> Tensor",
          .infer = atleast,
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[]; f32[a]; f32[a, b]; f32[a, 2, 3, b]"},
    OpDef{.name = "aten.broadcast_tensors",
          .schema = "(Tensor[] tensors) -> Tensor[]",
          .infer = broadcast_tensors,
          .onnx = custom(onnx::broadcast_tensors),
          .executorch = decompose(parts::expand_each),
          .samples = "[f32[a, 1], i64[1, b]]; [f32[b], f32[a, 1, b], bool[]]"},
    OpDef{.name = "aten.broadcast_to",
          .schema = "(Tensor(a) self, SymInt[] size) -> Tensor(a)",
          .infer = expand,
          .onnx = custom(onnx::expand),
          .executorch = decompose(parts::expand_to_result),
          .samples = "f32[1, b, 1], [a, b, c]; bool[b], [a, b]; f32[], [a, 2]"},
    OpDef{.name = "aten.detach",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .handling = Handling::identity,
          .onnx = custom(onnx::same),
          .executorch = custom(executorch::same),
          .samples = "f32[a, b]; bool[a]"},
    OpDef{.name = "aten.detach_copy",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::same),
          .executorch = custom(executorch::same),
          .samples = "f32[a, b]; bool[a]"},
    OpDef{.name = "aten.expand",
          .schema = "(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
          .infer = expand,
          .onnx = custom(onnx::expand),
          .executorch = custom(executorch::expand),
          .xnnpack = custom(xnnpack::expand),
          .pairs = decompose(parts::pairs_expanded),
          .samples =
              "f32[1, b, 1], [a, b, c]; f32[b, 1], [a, -1, 4]; i64[a, b], [2, 3, -1, -1]; f32[a, "
              "1], [a, a]; c64[1, b], [a, b]; bool[1, b], [a, b]; bf16[1], [a]; f32[a, 1], [a, 0]"},
    OpDef{.name = "aten.expand_as",
          .schema = "(Tensor(a) self, Tensor other) -> Tensor(a)",
          .infer = expand_as,
          .onnx = custom(onnx::expand),
          .executorch = decompose(parts::expand_to_result),
          .samples = "f32[1, b], i64[a, b]; f32[b, 1], f32[a, b, c]"},
    OpDef{.name = "aten.expand_copy",
          .schema = "(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
          .infer = expand,
          .onnx = custom(onnx::expand),
          .executorch = custom(executorch::expand),
          .samples = "f32[1, b, 1], [a, b, c]; f32[b, 1], [a, -1, 4]"},
    OpDef{
        .name = "aten.flatten.using_ints",
        .schema = "(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
        .infer = flatten,
        .put_back = {PutBack::How::reshape},
        .onnx = custom(onnx::to_result_shape),
        .executorch = custom(executorch::view),
        .xnnpack = custom(xnnpack::reshape),
        .pairs = decompose(parts::pairs_in_shape),
        .samples = "f32[a, b, 3]; f32[a, b, 3], 1; f32[a, 2, b, 3], 1, -2; f32[]; f32[a], -1, -1"},
    OpDef{.name = "aten.lift_fresh",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .handling = Handling::identity,
          .onnx = custom(onnx::same),
          .executorch = custom(executorch::same),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.lift_fresh_copy",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::same),
          .executorch = custom(executorch::same),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.ravel",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = ravel,
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[a, b, 3]; i64[]"},
    OpDef{.name = "aten.reshape",
          .schema = "(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
          .infer = reshape,
          .recording = Recording::view_or_copy,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .pairs = decompose(parts::pairs_in_shape),
          .samples = "f32[a, b, 6], [a, -1, 3]; f32[a, b, 6], [a, 6*b]; i64[a, b], [-1]; f32[a, b, "
                     "4, 6], [a, b, -1]; bool[a, 6], [-1, 2, 1]; f32[], [1, 1]; c64[a, b], [-1]; "
                     "f32[a, b, 3], [b, 3, a]; f32[0, a], [a, 0]"},
    OpDef{.name = "aten.reshape_as",
          .schema = "(Tensor(a) self, Tensor other) -> Tensor(a)",
          .infer = shaped_like_other,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .samples = "f32[a, b, 6], i64[a*b, 6]; f32[a*b], f32[b, a]"},
    OpDef{.name = "aten.squeeze",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = squeeze,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::squeeze),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .samples = "f32[1, a, 1, 3]; f32[1]; f32[a, b]"},
    OpDef{.name = "aten.squeeze.dim",
          .schema = "(Tensor(a) self, int dim) -> Tensor(a)",
          .infer = squeeze_listed,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::squeeze_listed),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .pairs = decompose(parts::pairs_in_shape),
          .samples = "f32[a, 1, b], 1; f32[a, 1, b], -1; f32[a, b, 1], -1; f32[], 0; c64[a, 1], 1"},
    OpDef{.name = "aten.squeeze.dims",
          .schema = "(Tensor(a) self, int[] dim) -> Tensor(a)",
          .infer = squeeze_listed,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::squeeze_listed),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .samples = "f32[a, 1, 1], [1, -1]; f32[1, b, 1], [0, 1]"},
    OpDef{.name = "aten.squeeze_copy.dim",
          .schema = "(Tensor self, int dim) -> Tensor",
          .infer = squeeze_listed,
          .onnx = custom(onnx::squeeze_listed),
          .executorch = custom(executorch::view),
          .samples = "f32[a, 1, b], 1; f32[a, 1, b], -1"},
    OpDef{.name = "aten.unflatten.int",
          .schema = "(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
          .infer = unflatten,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .samples = "f32[a, 12], 1, [3, -1]; f32[a, 6*b, 2], -2, [b, 6]; f32[4*a, b], 0, [-1, 4]"},
    OpDef{.name = "aten.unsqueeze",
          .schema = "(Tensor(a) self, int dim) -> Tensor(a)",
          .infer = unsqueeze,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::unsqueeze),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .pairs = decompose(parts::pairs_in_shape),
          .samples = "f32[a, b], 0; f32[a, b], -1; i64[], 0; f32[a, b], 1; c64[a], -1"},
    OpDef{.name = "aten.unsqueeze_copy",
          .schema = "(Tensor self, int dim) -> Tensor",
          .infer = unsqueeze,
          .onnx = custom(onnx::unsqueeze),
          .executorch = custom(executorch::view),
          .samples = "f32[a, b], 0; f32[a, b], -1"},
    OpDef{.name = "aten.view",
          .schema = "(Tensor(a) self, SymInt[] size) -> Tensor(a)",
          .infer = view,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .pairs = decompose(parts::pairs_in_shape),
          .samples =
              "f32[a, b, 6], [a, b, 2, 3]; f32[a, b, 6], [-1, 6]; f32[a, 4, b], [-1, 4*b]; f32[a, "
              "b], [a*b]; f32[2*a, b], [a, 2, -1]; c64[a, 6], [a, 2, 3]; f32[a, 0], [0, a, 3]"},
    OpDef{.name = "aten.view.dtype",
          .schema = "(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
          .infer = view_dtype,
          .onnx = custom(onnx::view_dtype),
          .executorch = refuse("the runtime has no kernel that reads bits as another type"),
          .samples = "f32[a, b], i32; f32[a, b], f16; i8[a, 8], i32; f32[], i32; i32[a, b], u8; "
                     "i64[a, b], i32; i32[a, 2*b], i64; f16[a, b], i16; i16[a, b], f16; i32[a], "
                     "f32; bf16[a, 2*b], f32; c64[a, b], f32; f32[a, 2*b], c64; f32[a, b], u8; "
                     "u8<256>[a, 4*b], f32; f32[a, b], bf16"},
    OpDef{.name = "aten.view_as",
          .schema = "(Tensor(a) self, Tensor other) -> Tensor(a)",
          .infer = shaped_like_other,
          .put_back = {PutBack::How::reshape},
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .xnnpack = custom(xnnpack::reshape),
          .samples = "f32[a, b, 6], i64[a*b, 6]; f32[a*b], f32[b, a]"},
    OpDef{.name = "aten.view_as_complex",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = view_as_complex,
          .put_back = {PutBack::How::inverse, "aten.view_as_real"},
          .onnx = custom(onnx::view_as_complex),
          .executorch = decompose(parts::view_as_complex),
          .samples = "f32[a, b, 2]; f64[2]"},
    OpDef{.name = "aten.view_as_real",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = view_as_real,
          .put_back = {PutBack::How::inverse, "aten.view_as_complex"},
          .onnx = custom(onnx::view_as_real),
          .executorch = decompose(parts::view_as_real),
          .samples = "c64[a, b]; c128[]"},
    OpDef{.name = "aten.view_copy",
          .schema = "(Tensor self, SymInt[] size) -> Tensor",
          .infer = view,
          .onnx = custom(onnx::to_result_shape),
          .executorch = custom(executorch::view),
          .samples = "f32[a, b, 6], [a*b, 6]; f32[a*b, 6], [a, b, -1]"},
};
static_assert(first_bad_row(kViewOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> view_ops() { return kViewOps; }

}  // namespace modelport::ops