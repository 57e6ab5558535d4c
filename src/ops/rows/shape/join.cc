// Tensors put together along an axis, or repeated.
#include "ops/onnx/join.h"

#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/shape.h"
#include "ops/executorch/index.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/shape.h"

namespace modelport::ops {
namespace {

using Operands = std::vector<const ir::TensorType*>;

Dtype common_dtype(const Operands& operands) {
  Dtype dtype = operands.front()->dtype;
  for (const ir::TensorType* operand : operands) dtype = promote(dtype, operand->dtype);
  return dtype;
}

Results cat_along(Call& call, const std::vector<Shape>& shapes, std::int64_t axis, Dtype dtype) {
  std::size_t rank = 1;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.size());
  axis = normal_axis(call, axis, static_cast<std::int64_t>(rank));
  Shape result;
  for (const Shape& shape : shapes) {
    // An old rule of torch's: an empty 1-d tensor goes with tensors of any rank.
    if (shape.size() == 1 && rank > 1 && call.equal(shape[0], 0)) continue;
    call.require(shape.size() == rank, "cat of tensors of different rank");
    if (result.empty()) {
      result = shape;
      continue;
    }
    for (std::size_t i = 0; i < rank; ++i) {
      result[i] = static_cast<std::int64_t>(i) == axis ? result[i] + shape[i]
                                                       : agreed(call, result[i], shape[i]);
    }
  }
  return one(dtype, std::move(result));
}

std::vector<Shape> shapes_of(const Operands& operands) {
  std::vector<Shape> shapes;
  for (const ir::TensorType* operand : operands) shapes.push_back(operand->shape);
  return shapes;
}

Results cat(Call& call) {
  const Operands operands = all_tensors(call, "tensors");
  call.require(!operands.empty(), "cat of no tensors");
  return cat_along(call, shapes_of(operands), call.number("dim"), common_dtype(operands));
}

Results stack(Call& call) {
  const Operands operands = all_tensors(call, "tensors");
  call.require(!operands.empty(), "stack of no tensors");
  Shape result = operands.front()->shape;
  for (const ir::TensorType* operand : operands) {
    call.require(operand->shape.size() == result.size(), "stack of tensors of different rank");
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = agreed(call, result[i], operand->shape[i]);
    }
  }
  const std::int64_t axis = axis_of(call, "dim", static_cast<std::int64_t>(result.size()) + 1);
  return one(common_dtype(operands),
             with_axis(std::move(result), axis, static_cast<std::int64_t>(operands.size())));
}

// hstack, vstack, dstack, column_stack: cat once each operand has enough axes.
Results stack_of_kind(Call& call) {
  const Operands operands = all_tensors(call, "tensors");
  call.require(!operands.empty(), "stack of no tensors");
  const std::string_view kind = call.op().name;
  std::vector<Shape> shapes = shapes_of(operands);
  const bool flat = shapes.front().size() <= 1;
  for (Shape& shape : shapes) {
    if (shape.empty()) shape.push_back(1);
    if (shape.size() > 1 || kind == "aten.hstack") {
      if (shape.size() == 2 && kind == "aten.dstack") shape.push_back(1);
      continue;
    }
    if (kind == "aten.column_stack") shape.push_back(1);
    if (kind == "aten.vstack" || kind == "aten.row_stack") shape.insert(shape.begin(), 1);
    if (kind == "aten.dstack") shape = {1, shape[0], 1};
  }
  const bool rows = kind == "aten.vstack" || kind == "aten.row_stack";
  const std::int64_t axis = kind == "aten.dstack"                     ? 2
                            : rows || (flat && kind == "aten.hstack") ? 0
                                                                      : 1;
  return cat_along(call, shapes, axis, common_dtype(operands));
}

Results repeat_by(Call& call, std::vector<Int> counts) {
  const Shape& shape = call.shape("self");
  call.require(counts.size() >= shape.size(), "repeat needs a count for each axis");
  const std::size_t added = counts.size() - shape.size();
  for (std::size_t i = 0; i < shape.size(); ++i) counts[added + i] *= shape[i];
  return one(call.dtype_of("self"), std::move(counts));
}

Results repeat(Call& call) { return repeat_by(call, call.ints("repeats")); }

Results tile(Call& call) {
  std::vector<Int> counts = call.ints("dims");
  while (counts.size() < call.shape("self").size()) counts.insert(counts.begin(), 1);
  return repeat_by(call, std::move(counts));
}

Results repeat_interleave_int(Call& call) {
  const Int repeats = call.integer("repeats");
  const std::optional<std::int64_t> axis = optional_axis(call, "dim", call.rank("self"));
  const Dtype dtype = call.dtype_of("self");
  if (!axis) return one(dtype, {numel(call.shape("self")) * repeats});
  Shape shape = call.shape("self");
  if (shape.empty()) shape.push_back(1);
  return one(dtype, with_size(shape, *axis, shape[*axis] * repeats));
}

Results repeat_interleave_tensor(Call& call) {
  const std::optional<std::int64_t> axis = optional_axis(call, "dim", call.rank("self"));
  const std::size_t where = axis.value_or(0);
  const std::optional<Int> given = call.optional_integer("output_size");
  const Int size = given ? *given : call.unknown_size(0, where);
  if (!axis) return one(call.dtype_of("self"), {size});
  return one(call.dtype_of("self"), with_size(call.shape("self"), *axis, size));
}

Results repeat_interleave_counts(Call& call) {
  const std::optional<Int> given = call.optional_integer("output_size");
  return one(call.dtype_of("repeats"), {given ? *given : call.unknown_size(0, 0)});
}

Results meshgrid(Call& call) {
  const Operands operands = all_tensors(call, "tensors");
  Shape grid;
  for (const ir::TensorType* operand : operands) {
    call.require(operand->shape.size() <= 1, "meshgrid takes tensors with one axis");
    grid.push_back(operand->shape.empty() ? Int(1) : operand->shape[0]);
  }
  const bool xy = call.op().name == "aten.meshgrid.indexing" && call.string("indexing") == "xy";
  if (xy && grid.size() >= 2) std::swap(grid[0], grid[1]);
  Results results;
  for (const ir::TensorType* operand : operands) {
    results.push_back(ir::TensorType{operand->dtype, grid});
  }
  return results;
}

Results cartesian_prod(Call& call) {
  const Operands operands = all_tensors(call, "tensors");
  call.require(!operands.empty(), "a list of no tensors");
  Int rows = 1;
  for (const ir::TensorType* operand : operands) rows *= size_at(call, operand->shape, 0);
  const Dtype dtype = operands.front()->dtype;
  if (operands.size() == 1) return one(dtype, {rows});
  return one(dtype, {rows, static_cast<std::int64_t>(operands.size())});
}

Results block_diag(Call& call) {
  const Operands operands = all_tensors(call, "tensors");
  call.require(!operands.empty(), "a list of no tensors");
  Int rows = 0;
  Int columns = 0;
  for (const ir::TensorType* operand : operands) {
    const Shape& shape = operand->shape;
    rows += shape.size() == 2 ? shape[0] : Int(1);
    columns += shape.empty() ? Int(1) : shape.back();
  }
  return one(common_dtype(operands), {rows, columns});
}

Results pad_sequence(Call& call) {
  const Operands operands = all_tensors(call, "sequences");
  call.require(!operands.empty(), "pad_sequence of no tensors");
  const Shape& first = operands.front()->shape;
  Int longest = size_at(call, first, 0);
  for (const ir::TensorType* operand : operands) {
    const Int& length = size_at(call, operand->shape, 0);
    if (surely_at_least(call, longest, length)) continue;
    longest = surely_at_least(call, length, longest) ? length : shape::max(longest, length);
  }
  const Int count = static_cast<std::int64_t>(operands.size());
  Shape result{longest, count};
  if (call.flag("batch_first")) std::swap(result[0], result[1]);
  return one(operands.front()->dtype, joined(std::move(result), from(first, 1)));
}

constexpr std::array kJoinOps{
    OpDef{.name = "aten.block_diag",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = block_diag,
          .onnx = custom(onnx::block_diag),
          .executorch = decompose(parts::block_diag),
          .samples = "[f32[a, b], f32[b, 3]]; [f32[a], f32[], f32[2, b]]; [i64[a, b], i64[2, 2]]; "
                     "[bool[a, 2], bool[1, b]]"},
    OpDef{.name = "aten.cartesian_prod",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = cartesian_prod,
          .onnx = custom(onnx::cartesian_prod),
          .executorch = decompose(parts::cartesian_prod),
          .samples = "[f32[a], f32[b]]; [i64[a]]; [i64[a], i64[b], i64[2]]"},
    OpDef{.name = "aten.cat",
          .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
          .infer = cat,
          .layout = Layout::dense_joined,
          .onnx = custom(onnx::cat),
          .xnnpack = custom(xnnpack::cat),
          .pairs = decompose(parts::on_pairs),
          .samples =
              "[f32[a, b], f32[a, 3]], 1; [f32[a, 2, 3], f32[b, 2, 3], f32[1, 2, 3]]; [f32[0], "
              "f32[a, b]], -2; [f32[a], i64[b]], -1; [f16[a, b], f32[a, b]], -1; [f32[a, b]]; "
              "[bool[a, b], bool[a, 2]], 1; [c64[a], c64[b]]; [c64[a], f32[b]]; [f32[0], f32[0]]; "
              "[f32[a, 0], f32[a, b]], 1; [i32[a], bool[b], i64[2]]; [bf16[a, b], bf16[a, b]]"},
    OpDef{.name = "aten.column_stack",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = stack_of_kind,
          .onnx = custom(onnx::column_stack),
          .executorch = decompose(parts::column_stack),
          .samples = "[f32[a], f32[a]]; [f32[a, b], f32[a]]"},
    OpDef{.name = "aten.concat",
          .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
          .infer = cat,
          .onnx = custom(onnx::cat),
          .executorch = decompose(parts::concat),
          .samples = "[f32[a, b], f32[a, 3]], 1; [f32[a, 2, 3], f32[b, 2, 3]]"},
    OpDef{.name = "aten.concatenate",
          .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
          .infer = cat,
          .onnx = custom(onnx::cat),
          .executorch = decompose(parts::concat),
          .samples = "[f32[a, b], f32[a, 3]], 1; [f32[a, 2, 3], f32[b, 2, 3]]"},
    OpDef{.name = "aten.dstack",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = stack_of_kind,
          .onnx = custom(onnx::dstack),
          .executorch = decompose(parts::dstack),
          .samples = "[f32[a], f32[a]]; [f32[a, b], f32[a, b]]; [f32[a, b, 2], f32[a, b, 1]]"},
    OpDef{.name = "aten.hstack",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = stack_of_kind,
          .onnx = custom(onnx::hstack),
          .executorch = decompose(parts::hstack),
          .samples = "[f32[a], f32[b]]; [f32[a, b], f32[a, 3]]; [f32[], f32[]]; [bool[a], f32[b]]"},
    OpDef{.name = "aten.meshgrid",
          .schema = "(Tensor[] tensors) -> Tensor[]",
          .infer = meshgrid,
          .onnx = custom(onnx::meshgrid),
          .executorch = decompose(parts::meshgrid),
          .samples = "[f32[a], f32[b]]; [i64[a], i64[], i64[b]]"},
    OpDef{.name = "aten.meshgrid.indexing",
          .schema = "(Tensor[] tensors, *, str indexing) -> Tensor[]",
          .infer = meshgrid,
          .onnx = custom(onnx::meshgrid),
          .executorch = decompose(parts::meshgrid),
          .samples = "[f32[a], f32[b]], indexing=\"xy\"; [f32[a], f32[b], f32[3]], "
                     "indexing=\"ij\"; [f32[a], f32[b], f32[3]], indexing=\"xy\"; [i64[], i64[a]], "
                     "indexing=\"xy\"; [bool[a], bool[b]], indexing=\"ij\""},
    OpDef{.name = "aten.pad_sequence",
          .schema = "(Tensor[] sequences, bool batch_first=False, float padding_value=0., str "
                    "padding_side=\"right\") -> Tensor",
          .infer = pad_sequence,
          .onnx = custom(onnx::pad_sequence),
          .executorch = decompose(parts::pad_sequence),
          .samples = "[f32[a, 3], f32[b, 3]]; [f32[a], f32[a], f32[2]], True; [f32[a, 3], f32[b, "
                     "3]], True, 1.5, \"left\"; [i64[a], i64[b]], False, -1.0"},
    OpDef{.name = "aten.repeat",
          .schema = "(Tensor self, SymInt[] repeats) -> Tensor",
          .infer = repeat,
          .onnx = custom(onnx::repeat),
          .samples = "f32[a, b], [2, 3]; f32[a, b], [4, 1, c]; f32[], [a]; f32[a], [0]; f32[1, b], "
                     "[a, 1]; c64[a, 2], [2, 1]; bool[a, b], [1, c]; bf16[a], [3]; f32[a, b], [1, "
                     "1]; f32[a, b], [2, 0]; f32[1, 1, b], [2, a, 1, 1]"},
    OpDef{.name = "aten.repeat_interleave.Tensor",
          .schema = "(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
          .infer = repeat_interleave_counts,
          .onnx = custom(onnx::repeat_interleave_counts),
          .samples = "i64<4>[a]; i64<3>[5]"},
    OpDef{.name = "aten.repeat_interleave.self_Tensor",
          .schema =
              "(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
          .infer = repeat_interleave_tensor,
          .onnx = custom(onnx::repeat_interleave_tensor),
          .executorch = custom(executorch::repeat_interleave_by_tensor),
          .samples =
              "f32[a, b], i64<4>[a], 0; f32[a], i64<3>[a]; f32[a, b], i64<2>[b], -1; f32[a, b], "
              "i64<3>[1], 0; f32[a, 2], i32<3>[], 0; c64[a], i64<3>[a]; f32[a, b], i64<1>[a], 0"},
    OpDef{.name = "aten.repeat_interleave.self_int",
          .schema =
              "(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
          .infer = repeat_interleave_int,
          .onnx = custom(onnx::repeat_interleave),
          .executorch = decompose(parts::repeat_interleave),
          .samples = "f32[a, b], 2; f32[a, b], 3, 1; f32[a, b], c, -2; f32[], 3; bool[a, b], 2, 0; "
                     "c64[a, 2], 2, 1; f32[a, b], 1, 0; f32[a, b], 0, 0"},
    OpDef{.name = "aten.row_stack",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = stack_of_kind,
          .onnx = custom(onnx::vstack),
          .executorch = decompose(parts::vstack),
          .samples = "[f32[a], f32[a]]; [f32[a, b], f32[3, b]]"},
    OpDef{.name = "aten.stack",
          .schema = "(Tensor[] tensors, int dim=0) -> Tensor",
          .infer = stack,
          .layout = Layout::dense_joined,
          .onnx = custom(onnx::stack),
          .pairs = decompose(parts::on_pairs),
          .samples =
              "[f32[a, b], f32[a, b]]; [f32[a, b], i64[a, b], f32[a, b]], -1; [f32[]], 0; "
              "[f32[a], f32[a]], 1; [c64[a], c64[a]], 1; [bool[], bool[]]; [i32[a], f16[a]]"},
    OpDef{.name = "aten.tile",
          .schema = "(Tensor self, SymInt[] dims) -> Tensor",
          .infer = tile,
          .onnx = custom(onnx::tile),
          .executorch = decompose(parts::tile),
          .samples = "f32[a, b], [2]; f32[a, b], [4, 1, c]; f32[a, b, 2], [3, 1]"},
    OpDef{.name = "aten.vstack",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = stack_of_kind,
          .onnx = custom(onnx::vstack),
          .executorch = decompose(parts::vstack),
          .samples = "[f32[a], f32[a]]; [f32[a, b], f32[3, b]]; [f32[], f32[]]"},
};
static_assert(first_bad_row(kJoinOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> join_ops() { return kJoinOps; }

}  // namespace modelport::ops