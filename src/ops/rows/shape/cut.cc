// Parts of a tensor (slices, single indices, chunks, windows), and tensors with a part replaced.
#include "ops/onnx/cut.h"

#include <array>

#include "ops/decompositions/shape.h"
#include "ops/executorch/adjust.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/shape.h"

namespace modelport::ops {
namespace {

Results parts(Call& call, std::int64_t axis, const std::vector<Int>& sizes) {
  Results results;
  const ir::TensorType& self = call.tensor("self");
  for (const Int& size : sizes)
    results.push_back(ir::TensorType{self.dtype, with_size(self.shape, axis, size)});
  return results;
}

Results slice(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  call.require(call.rank("self") > 0, "slice of a tensor without axes");
  const Int size =
      slice_length(call, size_at(call, call.shape("self"), axis), call.optional_integer("start"),
                   call.optional_integer("end"), call.integer("step"));
  return one(call.dtype_of("self"), with_size(call.shape("self"), axis, size));
}

Results select(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  call.require(call.rank("self") > 0, "select from a tensor without axes");
  return one(call.dtype_of("self"), without_axis(call.shape("self"), axis));
}

Results narrow(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  return one(call.dtype_of("self"), with_size(call.shape("self"), axis, call.integer("length")));
}

/// Pieces of `piece` elements, the last one what is left. How many there are must not depend on the
/// size: that is settled by two linear conditions.
std::vector<Int> pieces(Call& call, const Int& size, const Int& piece, std::int64_t count) {
  const Int rest = size - piece * (count - 1);
  if (count > 1) call.require(call.at_least(rest, 1), "split into fewer parts than there were");
  call.require(call.at_least(piece, rest), "split into more parts than there were");
  std::vector<Int> sizes(count, piece);
  sizes.back() = call.dims().simplify(rest);
  return sizes;
}

// More results than any model has: a mistake, not a request for that much memory.
constexpr std::int64_t kMostParts = 1 << 16;

std::int64_t count_pieces(Call& call, const Int& size, const Int& piece) {
  const std::int64_t whole = call.hint(size);
  const std::int64_t part = call.hint(piece);
  call.require(part > 0 || whole == 0, "split into parts of no elements");
  const std::int64_t count = part <= 0 || whole <= 0 ? 1 : (whole - 1) / part + 1;
  call.require(count <= kMostParts, "too many parts");
  return count;
}

Results split(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const Int& size = size_at(call, call.shape("self"), axis);
  const Int piece = call.integer("split_size");
  return parts(call, axis, pieces(call, size, piece, count_pieces(call, size, piece)));
}

std::vector<Int> chunk_sizes(Call& call, const Int& size, std::int64_t chunks) {
  call.require(chunks > 0 && chunks <= kMostParts, "chunk into a sensible number of parts");
  if (const auto exact = shape::exact_quotient(size, chunks); exact && call.hint(size) > 0) {
    if (call.at_least(size, 1)) return std::vector<Int>(chunks, *exact);
  }
  if (call.hint(size) == 0) {
    call.equal(size, 0);
    return std::vector<Int>(chunks, 0);
  }
  const Int piece = shape::ceil_div(size, chunks);
  const std::int64_t count = count_pieces(call, size, piece);
  if (count != chunks) return pieces(call, size, piece, count);
  // Two parts come from any size but 1: said this way it bounds the size.
  const Int rest = size - piece * (chunks - 1);
  const bool all = chunks == 2 ? call.at_least(size, 2) : call.at_least(rest, 1);
  call.require(all, "chunk into fewer parts than there were");
  std::vector<Int> sizes(chunks, piece);
  sizes.back() = chunks == 2 ? shape::floor_div(size, 2) : rest;
  return sizes;
}

Results chunk(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  return parts(call, axis,
               chunk_sizes(call, size_at(call, call.shape("self"), axis), call.number("chunks")));
}

Results split_sizes(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const std::string_view name = call.op().name == "aten.split.sizes" ? "split_size" : "split_sizes";
  const std::vector<Int> sizes = call.ints(name);
  Int sum = 0;
  for (const Int& size : sizes) sum += size;
  call.require(call.equal(sum, size_at(call, call.shape("self"), axis)),
               "sizes of a split that do not add up");
  return parts(call, axis, sizes);
}

Results tensor_split_sections(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const std::int64_t count = call.number("sections");
  call.require(count > 0 && count <= kMostParts, "a sensible number of sections");
  const Int& size = size_at(call, call.shape("self"), axis);
  std::vector<Int> sizes;
  for (std::int64_t i = count; i-- > 0;) sizes.push_back(shape::floor_div(size + i, count));
  return parts(call, axis, sizes);
}

Results tensor_split_indices(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const Int& size = size_at(call, call.shape("self"), axis);
  std::vector<Int> sizes;
  std::optional<Int> start = 0;
  for (const Int& end : call.ints("indices")) {
    sizes.push_back(slice_length(call, size, start, end, 1));
    start = end;
  }
  sizes.push_back(slice_length(call, size, start, std::nullopt, 1));
  return parts(call, axis, sizes);
}

Results unbind(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const std::int64_t count = call.pin(size_at(call, call.shape("self"), axis));
  call.require(count >= 0 && count <= kMostParts, "too many parts");
  const ir::TensorType part{call.dtype_of("self"), without_axis(call.shape("self"), axis)};
  return Results(count, part);
}

Results unfold(Call& call) {
  const Int size = call.integer("size");
  const Int step = call.integer("step");
  if (call.rank("self") == 0) return one(call.dtype_of("self"), {size});
  const std::int64_t axis = axis_of(call, "dimension", call.rank("self"));
  const Int windows = shape::floor_div(size_at(call, call.shape("self"), axis) - size, step) + 1;
  return one(call.dtype_of("self"), joined(with_size(call.shape("self"), axis, windows), {size}));
}

Results as_strided(Call& call) { return one(call.dtype_of("self"), call.ints("size")); }

Int positive_part(Call& call, const Int& x) {
  return surely_at_least(call, x, 0) ? x : shape::max(x, 0);
}

Results diagonal_of(Call& call, std::string_view first, std::string_view second) {
  const std::string_view self = call.op().name == "aten.linalg_diagonal" ? "A" : "self";
  const std::int64_t a = axis_of(call, first, call.rank(self));
  const std::int64_t b = axis_of(call, second, call.rank(self));
  call.require(a != b, "a diagonal needs two axes");
  const std::int64_t offset = call.number("offset");
  Int rows = call.shape(self)[a] + std::min<std::int64_t>(offset, 0);
  Int columns = call.shape(self)[b] - std::max<std::int64_t>(offset, 0);
  const Int size = surely_at_least(call, rows, columns)   ? columns
                   : surely_at_least(call, columns, rows) ? rows
                                                          : shape::min(rows, columns);
  Shape result = without_axis(call.shape(self), std::max(a, b));
  result = without_axis(std::move(result), std::min(a, b));
  return one(call.dtype_of(self), joined(std::move(result), {positive_part(call, size)}));
}

Results diagonal(Call& call) { return diagonal_of(call, "dim1", "dim2"); }

constexpr std::array kCutOps{
    OpDef{.name = "aten.as_strided",
          .schema = "(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
                    "-> Tensor(a)",
          .infer = as_strided,
          .recording = Recording::strides,
          .put_back = {PutBack::How::scatter, "aten.as_strided_scatter"},
          .onnx = custom(onnx::as_strided),
          .samples = "f32[a, b], [b, a], [1, b]; f32[a + 8, 4], [a, 4, 4], [4, 4, 1], 2; f32[a, "
                     "b], [], [], 1; bool[a, b], [a], [b], 0; f32[4, 6], [3, 2], [6, 2], 1"},
    OpDef{
        .name = "aten.as_strided_copy",
        .schema =
            "(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        .infer = as_strided,
        .onnx = custom(onnx::as_strided),
        .samples = "f32[a, b], [b, a], [1, b]; f32[a + 8, 4], [a, 4, 4], [4, 4, 1], 2"},
    OpDef{.name = "aten.as_strided_scatter",
          .schema = "(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
                    "storage_offset=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::as_strided_scatter),
          .executorch = decompose(parts::as_strided_scatter),
          .samples = "f32[a, b], f32[a*b], [a*b], [1]; f32[a, 4], f32[a], [a], [4], 1"},
    OpDef{
        .name = "aten.chunk",
        .schema = "(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
        .infer = chunk,
        .put_back = {PutBack::How::split},
        .onnx = custom(onnx::split),
        .executorch = decompose(parts::split_as_results),
        .samples =
            "f32[a, 7], 3, 1; f32[a, 6], 2, -1; f32[3*a, b], 3; f32[a + 1, 4], 2; f32[a, 3], 5, 1"},
    OpDef{.name = "aten.diagonal",
          .schema = "(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
          .infer = diagonal,
          .put_back = {PutBack::How::scatter, "aten.diagonal_scatter"},
          .onnx = custom(onnx::diagonal),
          .samples = "f32[a, b]; f32[a, b], 1; f32[a, b, 4], -1, -1, 0; f32[a, a, 3]; f32[a, a], "
                     "2; c64[a, b]; f32[3, a, b], -2, 1, 2; f32[a, b], -1; f32[3, 4], 9"},
    OpDef{.name = "aten.diagonal_copy",
          .schema = "(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
          .infer = diagonal,
          .onnx = custom(onnx::diagonal),
          .samples = "f32[a, b]; f32[a, a, 3], 1"},
    OpDef{.name = "aten.diagonal_scatter",
          .schema = "(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::diagonal_scatter),
          .executorch = decompose(parts::diagonal_scatter),
          .samples = "f32[a, a], f32[a]; f32[3, a, a], f32[3, a], dim1=-2, dim2=-1; f32[a, 4, 6], "
                     "f32[a, 3], -1, 1, 2; f32[4, a, 6], f32[a, 4], 2, 0, 2; bool[a, a], bool[a]"},
    OpDef{.name = "aten.linalg_diagonal",
          .schema = "(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
          .infer = diagonal,
          .onnx = custom(onnx::diagonal),
          .executorch = decompose(parts::linalg_diagonal),
          .samples = "f32[a, b]; f32[3, a, a], offset=1"},
    OpDef{.name = "aten.narrow",
          .schema = "(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
          .infer = narrow,
          .put_back = {PutBack::How::narrow},
          .onnx = custom(onnx::narrow),
          .executorch = decompose(parts::narrow),
          .samples = "f32[a + 2, b], 0, 2, a; f32[a, 5], -1, 1, 3; f32[a, 5], 1, -3, 2; f32[a, 5], "
                     "1, -3, 3; f32[a + 3, 5], 0, -3, 2; c64[a, 5], 1, 0, 2"},
    OpDef{
        .name = "aten.narrow.Tensor",
        .schema = "(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
        .infer = narrow,
        .onnx = custom(onnx::narrow_at_tensor),
        .executorch = refuse("its start is a tensor; x.narrow(dim, int(start), length) works"),
        .samples =
            "f32[a + 2, b], 0, i64[], 2; f32[a + 1, 5], -2, i64[], a; f32[a + 5, b], 0, i64[], 1"},
    OpDef{.name = "aten.narrow_copy",
          .schema = "(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
          .infer = narrow,
          .onnx = custom(onnx::narrow),
          .executorch = decompose(parts::narrow),
          .samples = "f32[a + 2, b], 0, 2, a; f32[a, 5], -1, 1, 3"},
    OpDef{.name = "aten.select.int",
          .schema = "(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
          .infer = select,
          .put_back = {PutBack::How::scatter, "aten.select_scatter"},
          .onnx = custom(onnx::select),
          .xnnpack = custom(xnnpack::select),
          .pairs = decompose(parts::on_pairs),
          .samples = "f32[a, b, 3], 1, 0; f32[a, b, 3], -1, -1; i64[a], 0, a - 1; c64[a, 3], 1, "
                     "-2; bool[a, b], 0, 0"},
    OpDef{.name = "aten.select_copy.int",
          .schema = "(Tensor self, int dim, SymInt index) -> Tensor",
          .infer = select,
          .onnx = custom(onnx::select),
          .samples = "f32[a, b, 3], 1, 0; f32[a, b, 3], -1, -1"},
    OpDef{.name = "aten.select_scatter",
          .schema = "(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::select_scatter),
          .samples = "f32[a, b, 3], f32[a, 3], 1, 0; f32[a, b], f32[a], -1, -1; f32[a, b], f32[b], "
                     "0, a - 1; f32[a, 3], f32[a], 1, 1; f32[a, 3], f32[a], 1, -3; c64[a, 3], "
                     "c64[a], 1, 1; f32[a, 1], f32[a], 1, 0"},
    OpDef{.name = "aten.slice.Tensor",
          .schema = "(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                    "step=1) -> Tensor(a)",
          .infer = slice,
          .recording = Recording::bounds,
          .put_back = {PutBack::How::scatter, "aten.slice_scatter"},
          .onnx = custom(onnx::slice),
          .xnnpack = custom(xnnpack::slice),
          .pairs = decompose(parts::on_pairs),
          .samples =
              "f32[a, b]; f32[a, b], 0, 1; f32[a, b], -1, None, 2; f32[a, b], 1, -3; f32[a, b], 1, "
              "0, -1; f32[a, b], 1, 0, 9223372036854775807, 2; f32[a, b], 1, 1, None, 3; f32[a + "
              "b, 3], 0, a; f32[a + b, 3], 0, 0, a; f32[a, b], 0, -b; f32[a, 8], 1, 2, 100; f32[a, "
              "b], 0, 0, b; c64[a, b], 1, 1, -1; f32[a, b], 0, -100, 2; f32[a, b], 0, 3, 1; f32[a, "
              "b], 0, -2, -1; f32[a, b], 0, 100; f32[a, b], 1, -3, 9223372036854775807, 2"},
    OpDef{.name = "aten.slice_copy.Tensor",
          .schema = "(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
                    "-> Tensor",
          .infer = slice,
          .onnx = custom(onnx::slice),
          .samples = "f32[a, b], 0, 1; f32[a, b], -1, None, 2"},
    OpDef{.name = "aten.slice_scatter",
          .schema = "(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
                    "SymInt step=1) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::slice_scatter),
          .samples = "f32[a, b + 2], f32[a, b], 1, 1, b + 1; f32[a + 1, 3], f32[a, 3], 0, 1; "
                     "f32[a, 6], f32[a, 2], 1, -3, -1; f32[a, 6], f32[a, 3], 1, 0, 6, 2; f32[a, "
                     "7], f32[a, 2], 1, 1, 6, 3; f32[a, b], f32[a, b]; f32[a + 3, 2], f32[3, 2], "
                     "0, -3; c64[a, 6], c64[a, 2], 1, 1, 3; f32[a, 6], f32[a, 4], 1, 2, 100; f32[a "
                     "+ 3, 2], f32[1, 2], 0, -3, -2; f32[a, 6], f32[a, 0], 1, 4, 2"},
    OpDef{.name = "aten.split.Tensor",
          .schema = "(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
          .infer = split,
          .put_back = {PutBack::How::split},
          .onnx = custom(onnx::split),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], 3, 1; f32[2*a, b], a; f32[a, 6], 2, -1; f32[2*a + 1, 3], a + 1; "
                     "c64[a, 6], 2, 1; bool[a, 5], 5, 1; f32[0, a], 3"},
    OpDef{.name = "aten.split.sizes",
          .schema = "(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
          .infer = split_sizes,
          .onnx = custom(onnx::split),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], [3, 4], 1; f32[a + b, 3], [a, b]"},
    OpDef{.name = "aten.split_with_sizes",
          .schema = "(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
          .infer = split_sizes,
          .put_back = {PutBack::How::split},
          .onnx = custom(onnx::split),
          .xnnpack = custom(xnnpack::split),
          .samples = "f32[a, 7], [3, 4], 1; f32[a + b, 3], [a, b]; f32[3*a, 2], [a, 2*a], -2; "
                     "f32[a, 6], [2, 0, 4], 1; f32[a, 4], [4], 1; i64[a + 2, 3], [2, a]"},
    OpDef{.name = "aten.tensor_split.indices",
          .schema = "(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
          .infer = tensor_split_indices,
          .put_back = {PutBack::How::split},
          .onnx = custom(onnx::split_at),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], [2, 5], 1; f32[a + b, 6], [a]; f32[a, 6], [1, 3]; f32[a, 7], [-3, "
                     "6], 1; f32[a, 7], [5, 2], 1; f32[a, 3], [1, 100], 1"},
    OpDef{.name = "aten.tensor_split.sections",
          .schema = "(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
          .infer = tensor_split_sections,
          .put_back = {PutBack::How::split},
          .onnx = custom(onnx::split),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], 3, 1; f32[a, 6], 4"},
    OpDef{
        .name = "aten.unbind.int",
        .schema = "(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
        .infer = unbind,
        .put_back = {PutBack::How::unbind},
        .onnx = custom(onnx::unbind),
        .executorch = decompose(parts::unbind),
        .samples = "f32[a, 3, b], 1; f32[2, a]; f32[a, 4], -1; c64[a, 2], 1; f32[a, 1], 1; f32[3]"},
    OpDef{.name = "aten.unbind_copy.int",
          .schema = "(Tensor self, int dim=0) -> Tensor[]",
          .infer = unbind,
          .onnx = custom(onnx::unbind),
          .executorch = decompose(parts::unbind),
          .samples = "f32[a, 3, b], 1; f32[2, a]"},
    OpDef{.name = "aten.unfold",
          .schema = "(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
          .infer = unfold,
          .onnx = custom(onnx::unfold),
          .executorch = custom(executorch::unfold),
          .samples = "f32[a, b + 3], 1, 3, 2; f32[a + 4, b], -2, 4, 1; f32[2*a, 6], 0, a, a; "
                     "f32[], 0, 1, 1; f32[a, 7], 1, 3, 3; f32[a, 6, b], 1, 2, 2; i64[a, 9], 1, 4, "
                     "2; c64[a, 6], 1, 3, 1; f32[a + 3, 2], 0, 2, 5; f32[4*a, 2], 0, 4, 4"},
    OpDef{.name = "aten.unfold_copy",
          .schema = "(Tensor self, int dimension, int size, int step) -> Tensor",
          .infer = unfold,
          .onnx = custom(onnx::unfold),
          .executorch = custom(executorch::unfold),
          .samples = "f32[a, b + 3], 1, 3, 2; f32[a + 4, b], -2, 4, 1"},
    OpDef{.name = "aten.unsafe_chunk",
          .schema = "(Tensor self, int chunks, int dim=0) -> Tensor[]",
          .infer = chunk,
          .onnx = custom(onnx::split),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], 3, 1; f32[2*a, 6], 2"},
    OpDef{.name = "aten.unsafe_split.Tensor",
          .schema = "(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
          .infer = split,
          .onnx = custom(onnx::split),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], 3, 1; f32[2*a, b], a"},
    OpDef{.name = "aten.unsafe_split_with_sizes",
          .schema = "(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
          .infer = split_sizes,
          .onnx = custom(onnx::split),
          .executorch = decompose(parts::split_as_results),
          .samples = "f32[a, 7], [3, 4], 1; f32[a + b, 3], [a, b]"},
};
static_assert(first_bad_row(kCutOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> cut_ops() { return kCutOps; }

}  // namespace modelport::ops