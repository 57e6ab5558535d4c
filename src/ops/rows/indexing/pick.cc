// Elements picked by index: advanced indexing, gather, embeddings.
#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/indexing.h"
#include "ops/executorch/index.h"
#include "ops/onnx/index.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

bool is_mask(const ir::TensorType& index) {
  return index.dtype == Dtype::boolean || index.dtype == Dtype::u8;
}

/// What `self[indices]` does to the axes: a mask of k axes stands for k lists of positions.
struct Selection {
  Shape picked;                  // what the index tensors broadcast to
  bool masked = false;           // whether a mask adds a last axis that only the data knows
  std::vector<bool> is_indexed;  // by axis of self
};

Selection selection(Call& call, const std::vector<const ir::TensorType*>& indices) {
  Selection found;
  found.is_indexed.assign(call.shape("self").size(), false);
  std::size_t axis = 0;
  for (const ir::TensorType* index : indices) {
    const bool mask = index != nullptr && is_mask(*index);
    const std::size_t taken = mask ? index->shape.size() : 1;
    call.require(axis + taken <= found.is_indexed.size(), "more indices than axes");
    for (std::size_t i = 0; i < taken && index != nullptr; ++i) found.is_indexed[axis + i] = true;
    if (mask) {
      for (std::size_t i = 0; i < taken; ++i) {
        call.require(call.equal(index->shape[i], call.shape("self")[axis + i]),
                     "a mask that does not have the shape of what it indexes");
      }
      found.masked = true;
    } else if (index != nullptr) {
      found.picked = broadcast(call, found.picked, index->shape);
    }
    axis += taken;
  }
  return found;
}

Results index(Call& call) {
  const Selection selected = selection(call, call.tensors("indices"));
  const Shape& shape = call.shape("self");
  const std::vector<bool>& is_indexed = selected.is_indexed;
  // Indices that stand side by side leave their result in their place; others put it in front.
  std::size_t first = 0;
  while (first < shape.size() && !is_indexed[first]) ++first;
  std::size_t last = shape.size();
  while (last > first && !is_indexed[last - 1]) --last;
  bool together = true;
  for (std::size_t i = first; i < last; ++i) together = together && is_indexed[i];
  if (first == shape.size()) return one(call.dtype_of("self"), shape);

  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!is_indexed[i]) result.push_back(shape[i]);
  }
  const std::size_t place = together ? first : 0;
  Shape picked = selected.picked;
  if (selected.masked && picked.empty()) picked.push_back(1);
  // Beside an index of n positions a mask must have n elements (or one); alone, the data decides.
  if (selected.masked && picked.back() == Int(1)) {
    picked.back() = call.unknown_size(0, place + picked.size() - 1);
  }
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(place), picked.begin(), picked.end());
  return one(call.dtype_of("self"), std::move(result));
}

Results shaped_like_index(Call& call) { return one(call.dtype_of("self"), call.shape("index")); }

Results index_select(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const Shape& index = call.shape("index");
  call.require(index.size() <= 1, "index_select takes one list of positions");
  return one(call.dtype_of("self"),
             with_size(call.shape("self"), axis, index.empty() ? Int(1) : index[0]));
}

Results take_along_dim(Call& call) {
  const Dtype dtype = call.dtype_of("self");
  if (!call.has("dim")) return one(dtype, {numel(call.shape("indices"))});
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const Shape& indices = call.shape("indices");
  call.require(indices.size() == call.shape("self").size(), "indices of another rank");
  Shape result;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const bool along = static_cast<std::int64_t>(i) == axis;
    result.push_back(along ? indices[i] : broadcast(call, call.shape("self")[i], indices[i]));
  }
  return one(dtype, std::move(result));
}

Results embedding(Call& call) {
  call.require(call.rank("weight") == 2, "embedding takes a table of vectors");
  return one(call.dtype_of("weight"), joined(call.shape("indices"), {call.shape("weight")[1]}));
}

constexpr std::int64_t kModeSum = 0;
constexpr std::int64_t kModeMax = 2;

bool has_padding(Call& call) {
  if (schema_of(call.op()).find("padding_idx") == nullptr || !call.has("padding_idx")) return false;
  // -1 is "none" to the kernels, the last row to the public operator.
  return call.op().name.ends_with(".padding_idx") || call.number("padding_idx") >= 0;
}

Results embedding_bag(Call& call) {
  const Dtype dtype = call.dtype_of("weight");
  const Dtype positions = promote(call.dtype_of("indices"), call.dtype_of("offsets"));
  const Shape& weight = call.shape("weight");
  const Int count = numel(call.shape("indices"));
  Int bags = size_at(call, call.shape("offsets"), 0);
  if (call.flag("include_last_offset")) bags -= 1;
  const std::int64_t mode = call.number("mode");
  // The last three serve the backward pass; the fast kernel for plain sums leaves the first empty.
  const bool fast = mode == kModeSum && dtype != Dtype::f64 && !has_padding(call);
  return {ir::TensorType{dtype, {bags, size_at(call, weight, 1)}},
          ir::TensorType{positions, {fast ? Int(0) : count}}, ir::TensorType{positions, {bags}},
          ir::TensorType{positions,
                         mode == kModeMax ? Shape{bags, size_at(call, weight, 1)} : Shape{bags}}};
}

constexpr std::array kPickOps{
    OpDef{.name = "aten._embedding_bag",
          .schema =
              "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
              "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
              "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
          .infer = embedding_bag,
          .onnx = custom(onnx::embedding_bag),
          .executorch =
              refuse("the runtime has no kernel for bags of rows; embedding and a sum work"),
          .samples = "f32[5, b], i64<5>[a + 2], i64<1>[c]; f64[5, b], i64<5>[a + 2], i64<1>[c]; "
                     "f32[5, b], i64<5>[a + 2], i64<1>[c], False, 2"},
    OpDef{.name = "aten._embedding_bag_forward_only",
          .schema =
              "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
              "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
              "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
          .infer = embedding_bag,
          .onnx = custom(onnx::embedding_bag),
          .executorch =
              refuse("the runtime has no kernel for bags of rows; embedding and a sum work"),
          .samples =
              "f32[5, b], i64<5>[a + 2], i64<1>[c]; f32[5, b], i64<5>[a + 2], i64<1>[c], False, 1"},
    OpDef{.name = "aten._unsafe_index.Tensor",
          .schema = "(Tensor self, Tensor?[] indices) -> Tensor",
          .infer = index,
          .onnx = custom(onnx::index),
          .executorch = decompose(parts::unsafe_index),
          .samples = "f32[2, b, 3], [i64<2>[c]]; f32[a, 2, 3], [None, i64<2>[c, 1], i64<2>[4]]"},
    OpDef{.name = "aten.embedding",
          .schema = "(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
                    "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
          .infer = embedding,
          .layout = Layout::dense_rows,
          .onnx = custom(onnx::embedding),
          .executorch = custom(executorch::embedding),
          .samples = "f32[5, b], i64<5>[a, c]; f32[7, 4], i64<7>[a], 0; bf16[7, 4], i32<7>[a]"},
    OpDef{.name = "aten.embedding_bag",
          .schema =
              "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
              "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
              "include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
          .infer = embedding_bag,
          .onnx = custom(onnx::embedding_bag),
          .executorch =
              refuse("the runtime has no kernel for bags of rows; embedding and a sum work"),
          .samples = "f32[5, b], i64<5>[a + 2], i64<1>[c]; f32[5, b], i64<5>[a + 2], i64<1>[c], "
                     "False, 1; f32[5, b], i64<5>[a + 2], i64<1>[c], False, 2"},
    OpDef{.name = "aten.embedding_bag.padding_idx",
          .schema = "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int "
                    "mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? "
                    "padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
          .infer = embedding_bag,
          .onnx = custom(onnx::embedding_bag),
          .executorch =
              refuse("the runtime has no kernel for bags of rows; embedding and a sum work"),
          .samples = "f32[5, b], i64<5>[a + 2], i64<1>[c], False, 0, False, None, False, None; "
                     "f32[5, b], i64<5>[a + 2], i64<1>[c], False, 2, False, None, True, None; "
                     "f32[5, 4], i64<5>[a + 2], i64<1>[c], False, 0, False, f32[a + 2], False, 1; "
                     "f32[5, b], i64<5>[a + 2], i64<1>[c], False, 2, False, None, False, -1; "
                     "f32[5, b], i64<5>[a + 2], i64<1>[c], False, 1, False, None, False, 2; f64[5, "
                     "b], i32<5>[a + 2], i32<1>[c], False, 1, False, None, False, 0"},
    OpDef{
        .name = "aten.gather",
        .schema = "(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
        .infer = shaped_like_index,
        .onnx = custom(onnx::gather),
        .samples =
            "f32[3, b], 0, i64<3>[c, b]; f32[a, 2, 3], -1, i64<3>[a, 1, 4]; f32[], 0, i64<1>[]; "
            "c64[3, b], 0, i64<3>[c, b]; bool[a, 3], 1, i64<3>[a, 2]; i64[a, b], 1, i64<1>[2, 1]"},
    OpDef{.name = "aten.index.Tensor",
          .schema = "(Tensor self, Tensor?[] indices) -> Tensor",
          .infer = index,
          .onnx = custom(onnx::index),
          .executorch = custom(executorch::index),
          .pairs = decompose(parts::on_pairs),
          .samples =
              "f32[2, b, 3], [i64<2>[c]]; f32[a, 2, 3], [None, i64<2>[c, 2]]; f32[3, b, 3], "
              "[i64<2>[c], None, i64<2>[c]]; f32[a, 3, 2, b], [None, i64<2>[c, 1], i64<2>[2]]; "
              "f32[a, b, 3], [bool[a, b]]; f32[a, b, 3], [None, bool[b]]; f32[a, 3], [bool[a], "
              "i64<2>[]]; f32[2, b, 3], [i64<2>[], None, i64<2>[4]]; f32[a, b], [i64<1>[a, 1], "
              "i64<1>[b]]; f32[a], [bool[a]]; f32[6, b], [i64[c]]; f32[6, 7, b], [i64[c], i64[c]]; "
              "f32[a, 6, 7], [None, i64[c, 1], i64[3]]; f32[6, b, 7], [i64[c], None, i64[c]]; "
              "c64[6, b], [i64[c]]; bool[a, b], [bool[a, b]]; f32[a, b, 6], [bool[a], None, "
              "i64[]]; f32[a, b, 3], [bool[a, b], i64<3>[]]; i64[6, b], [i32[c, 2]]; f16[6, 6, 7], "
              "[i64[c], i64[], i64[1]]; f32[a, 6], [i64<1>[a, 1], bool[6]]"},
    OpDef{.name = "aten.index_select",
          .schema = "(Tensor self, int dim, Tensor index) -> Tensor",
          .infer = index_select,
          .layout = Layout::dense_for_dense,
          .onnx = custom(onnx::index_select),
          .pairs = decompose(parts::on_pairs),
          .samples = "f32[a, 3, b], 1, i64<3>[c]; f32[a, 3], -1, i64<3>[]; f32[], 0, i64<1>[1]; "
                     "bool[a, 3], 1, i32<3>[c]; c64[a, 3], 1, i64<3>[c]"},
    OpDef{.name = "aten.take",
          .schema = "(Tensor self, Tensor index) -> Tensor",
          .infer = shaped_like_index,
          .onnx = custom(onnx::take),
          .executorch = decompose(parts::take),
          .samples =
              "f32[a, 3], i64<3>[b, 2]; f32[a], i64<1>[]; i64[6, b], i64[c]; f32[], i64<1>[a]"},
    OpDef{.name = "aten.take_along_dim",
          .schema = "(Tensor self, Tensor indices, int? dim=None) -> Tensor",
          .infer = take_along_dim,
          .onnx = custom(onnx::take_along_dim),
          .executorch = decompose(parts::take_along_dim),
          .samples =
              "f32[a, 3], i64<3>[a, b], 1; f32[a, 1], i64<1>[1, b], 0; f32[a, 3], i64<3>[b, 2]"},
};
static_assert(first_bad_row(kPickOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> pick_ops() { return kPickOps; }

}  // namespace modelport::ops