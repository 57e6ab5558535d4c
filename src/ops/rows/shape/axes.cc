// Axes in another order, or elements in another order along them.
#include "ops/rules/axes.h"

#include <algorithm>
#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/shape.h"
#include "ops/executorch/adjust.h"
#include "ops/executorch/view.h"
#include "ops/onnx/shape.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/shape.h"

namespace modelport::ops {
namespace {

Results permute(Call& call) {
  const std::vector<std::int64_t> axes = axis_list(call, "dims", call.rank("self"));
  call.require(axes.size() == call.shape("self").size(), "permute needs every axis once");
  Shape result;
  for (const std::int64_t axis : axes) result.push_back(call.shape("self")[axis]);
  return one(call.dtype_of("self"), std::move(result));
}

Results swap_axes(Call& call, std::string_view first, std::string_view second) {
  Shape result = call.shape("self");
  const std::int64_t a = axis_of(call, first, call.rank("self"));
  const std::int64_t b = axis_of(call, second, call.rank("self"));
  if (!result.empty()) std::swap(result[a], result[b]);
  return one(call.dtype_of("self"), std::move(result));
}

Results transpose(Call& call) { return swap_axes(call, "dim0", "dim1"); }
Results swapaxes(Call& call) { return swap_axes(call, "axis0", "axis1"); }

// t, mT, mH, adjoint, numpy_T on a matrix: the last two axes change places.
Results matrix_transpose(Call& call) {
  Shape result = call.shape("self");
  if (result.size() >= 2) std::swap(result[result.size() - 2], result[result.size() - 1]);
  return one(call.dtype_of("self"), std::move(result));
}

Results reverse_axes(Call& call) {
  Shape result = call.shape("self");
  std::reverse(result.begin(), result.end());
  return one(call.dtype_of("self"), std::move(result));
}

Results movedim(Call& call) {
  const std::int64_t rank = call.rank("self");
  const std::vector<std::int64_t> sources = axis_list(call, "source", rank);
  const std::vector<std::int64_t> targets = axis_list(call, "destination", rank);
  call.require(sources.size() == targets.size(), "movedim needs as many targets as axes");
  if (rank == 0) return like_self(call);
  std::vector<std::int64_t> order(rank, -1);
  std::vector<bool> moved(rank, false);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    call.require(order[targets[i]] < 0 && !moved[sources[i]], "movedim moves an axis once");
    order[targets[i]] = sources[i];
    moved[sources[i]] = true;
  }
  std::int64_t next = 0;
  for (std::int64_t& axis : order) {
    if (axis >= 0) continue;
    while (moved[next]) ++next;
    axis = next++;
  }
  Shape result;
  for (const std::int64_t axis : order) result.push_back(call.shape("self")[axis]);
  return one(call.dtype_of("self"), std::move(result));
}

Results rot90(Call& call) {
  const std::vector<std::int64_t> axes = axis_list(call, "dims", call.rank("self"));
  Shape result = call.shape("self");
  call.require(result.size() >= 2 && axes.size() == 2, "rot90 turns two axes");
  if (call.number("k") % 2 != 0) std::swap(result[axes[0]], result[axes[1]]);
  return one(call.dtype_of("self"), std::move(result));
}

constexpr std::array kAxesOps{
    OpDef{.name = "aten.adjoint",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = matrix_transpose,
          .onnx = custom(onnx::matrix_adjoint),
          .executorch = decompose(parts::matrix_adjoint),
          .samples = "f32[a, b]; f32[3, a, b]; c64[a, b]"},
    OpDef{.name = "aten.channel_shuffle",
          .schema = "(Tensor self, SymInt groups) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::channel_shuffle),
          .executorch = decompose(parts::channel_shuffle),
          .samples = "f32[a, 6, b, 3], 2; f32[a, 4, b], 4"},
    OpDef{.name = "aten.flip",
          .schema = "(Tensor self, int[] dims) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::flip),
          .pairs = decompose(parts::on_pairs),
          .samples = "f32[a, b], [0]; f32[a, b], [-1, 0]; c64[a, b], [1]; bool[a, b, 3], [0, 2]; "
                     "f32[a], []"},
    OpDef{.name = "aten.fliplr",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::fliplr),
          .executorch = decompose(parts::flip_left_right),
          .samples = "f32[a, b]; f32[a, b, 3]"},
    OpDef{.name = "aten.flipud",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::flipud),
          .executorch = decompose(parts::flip_up_down),
          .samples = "f32[a, b]; f32[a]"},
    OpDef{.name = "aten.mH",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = matrix_transpose,
          .onnx = custom(onnx::matrix_adjoint),
          .executorch = decompose(parts::matrix_adjoint),
          .samples = "f32[a, b]; f32[3, a, b]; c64[a, b]"},
    OpDef{.name = "aten.mT",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = matrix_transpose,
          .put_back = {PutBack::How::itself},
          .onnx = custom(onnx::matrix_transpose),
          .executorch = decompose(parts::matrix_transpose),
          .samples = "f32[a, b]; f32[3, a, b]; c64[3, a, b]"},
    OpDef{.name = "aten.moveaxis.int",
          .schema = "(Tensor(a) self, int source, int destination) -> Tensor(a)",
          .infer = movedim,
          .onnx = custom(onnx::movedim),
          .executorch = decompose(parts::move_axis),
          .samples = "f32[a, b, 3, 4], 0, 2; f32[a, b, 3], -1, 0"},
    OpDef{.name = "aten.moveaxis.intlist",
          .schema = "(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
          .infer = movedim,
          .onnx = custom(onnx::movedim),
          .executorch = decompose(parts::move_axes),
          .samples = "f32[a, b, 3, 4], [0, 1], [-1, 0]; f32[a, b, 3], [1], [2]"},
    OpDef{.name = "aten.movedim.int",
          .schema = "(Tensor(a) self, int source, int destination) -> Tensor(a)",
          .infer = movedim,
          .onnx = custom(onnx::movedim),
          .executorch = decompose(parts::move_axis),
          .samples = "f32[a, b, 3, 4], 0, 2; f32[a, b, 3], -1, 0"},
    OpDef{.name = "aten.movedim.intlist",
          .schema = "(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
          .infer = movedim,
          .onnx = custom(onnx::movedim),
          .executorch = decompose(parts::move_axes),
          .samples = "f32[a, b, 3, 4], [0, 1], [-1, 0]; f32[a, b, 3], [1], [2]"},
    OpDef{.name = "aten.native_channel_shuffle",
          .schema = "(Tensor self, SymInt groups) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::channel_shuffle),
          .executorch = decompose(parts::channel_shuffle),
          .samples = "f32[a, 6, b, 3], 2; f32[a, 4, 5, b], 4"},
    OpDef{.name = "aten.numpy_T",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = reverse_axes,
          .put_back = {PutBack::How::itself},
          .onnx = custom(onnx::reverse_axes),
          .executorch = decompose(parts::reverse_axes),
          .samples = "f32[a, b]; f32[a]; f32[]"},
    OpDef{.name = "aten.permute",
          .schema = "(Tensor(a) self, int[] dims) -> Tensor(a)",
          .infer = permute,
          .put_back = {PutBack::How::permute},
          .onnx = custom(onnx::permute),
          .executorch = custom(executorch::permute),
          .xnnpack = custom(xnnpack::permute),
          .pairs = decompose(parts::pairs_permuted),
          .samples = "f32[a, b, 3], [2, 0, 1]; f32[a, b, 3], [0, -1, -2]; f32[], []; c64[a, b, 3], "
                     "[1, 2, 0]"},
    OpDef{.name = "aten.permute_copy",
          .schema = "(Tensor self, int[] dims) -> Tensor",
          .infer = permute,
          .onnx = custom(onnx::permute),
          .executorch = custom(executorch::permute),
          .samples = "f32[a, b, 3], [2, 0, 1]; f32[a, b, 3], [0, -1, -2]"},
    OpDef{.name = "aten.roll",
          .schema = "(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::roll),
          .executorch = custom(executorch::roll),
          .pairs = decompose(parts::on_pairs),
          .samples =
              "f32[a, b], [1]; f32[a, b], [2, -1], [0, 1]; f32[a, b], [9], [1]; f32[a + 3, "
              "b], [3], [0]; f32[a + 3, b], [-3, 2], [0, 1]; i64[a, b], [-5]; c64[a, 6], [2], "
              "[1]; f32[a, b], [a], [1]; f32[5, a], [7, 0], [0, 1]; f32[0, a], [1], [0]"},
    OpDef{
        .name = "aten.rot90",
        .schema = "(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor",
        .infer = rot90,
        .onnx = custom(onnx::rot90),
        .executorch = decompose(parts::rotate_quarters),
        .samples =
            "f32[a, b, 3]; f32[a, b, 3], 2; f32[a, b, 3], -1, [1, 2]; f32[a, b], 3; f32[a, b], 4"},
    OpDef{.name = "aten.swapaxes",
          .schema = "(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
          .infer = swapaxes,
          .onnx = custom(onnx::swapaxes),
          .executorch = decompose(parts::swap_axes),
          .samples = "f32[a, b, 3], 1, 2; f32[a, b, 3], -1, 0"},
    OpDef{.name = "aten.swapdims",
          .schema = "(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
          .infer = transpose,
          .onnx = custom(onnx::transpose),
          .executorch = decompose(parts::swap_axes),
          .samples = "f32[a, b, 3], 1, 2; f32[a, b, 3], -1, 0"},
    OpDef{.name = "aten.t",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = matrix_transpose,
          .put_back = {PutBack::How::itself},
          .onnx = custom(onnx::matrix_transpose),
          .executorch = custom(executorch::permute),
          .xnnpack = custom(xnnpack::permute),
          .samples = "f32[a, b]; f32[a]; f32[]"},
    OpDef{.name = "aten.t_copy",
          .schema = "(Tensor self) -> Tensor",
          .infer = matrix_transpose,
          .onnx = custom(onnx::matrix_transpose),
          .executorch = custom(executorch::permute),
          .samples = "f32[a, b]; f32[a]"},
    OpDef{.name = "aten.transpose.int",
          .schema = "(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
          .infer = transpose,
          .put_back = {PutBack::How::itself},
          .onnx = custom(onnx::transpose),
          .executorch = custom(executorch::permute),
          .xnnpack = custom(xnnpack::permute),
          .pairs = decompose(parts::on_pairs),
          .samples = "f32[a, b, 3], 1, 2; f32[a, b, 3], -1, 0; f32[], 0, -1"},
    OpDef{.name = "aten.transpose_copy.int",
          .schema = "(Tensor self, int dim0, int dim1) -> Tensor",
          .infer = transpose,
          .onnx = custom(onnx::transpose),
          .executorch = custom(executorch::permute),
          .samples = "f32[a, b, 3], 1, 2; f32[a, b, 3], -1, 0"},
};
static_assert(first_bad_row(kAxesOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> axes_ops() { return kAxesOps; }

}  // namespace modelport::ops