// Results whose number of elements, or whose value, only the data decides: each gets a fresh
// symbol.
#include <array>

#include "ops/decompositions/indexing.h"
#include "ops/executorch/adjust.h"
#include "ops/executorch/index.h"
#include "ops/executorch/unique.h"
#include "ops/onnx/count.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

Results nonzero(Call& call) {
  return one(Dtype::i64, {call.unknown_size(0, 0), call.rank("self")});
}

Results nonzero_static(Call& call) {
  return one(Dtype::i64, {call.integer("size"), call.rank("self")});
}

Results nonzero_lists(Call& call, std::string_view name) {
  const std::int64_t lists = std::max<std::int64_t>(call.rank(name), 1);
  return Results(lists, ir::TensorType{Dtype::i64, {call.unknown_size(0, 0)}});
}

Results nonzero_numpy(Call& call) { return nonzero_lists(call, "self"); }
Results where(Call& call) { return nonzero_lists(call, "condition"); }

Results masked_select(Call& call) {
  broadcast_args(call, {"self", "mask"});
  return one(call.dtype_of("self"), {call.unknown_size(0, 0)});
}

ir::TensorType indices_if(bool wanted, Shape shape) {
  return {Dtype::i64, wanted ? std::move(shape) : Shape{0}};
}

/// Values, the place of each element among them, and how often each occurs.
Results unique_along(Call& call, std::optional<std::int64_t> axis) {
  const Shape& shape = call.shape("self");
  const Int count = call.unknown_size(0, axis.value_or(0));
  const Shape values = axis ? with_size(shape, *axis, count) : Shape{count};
  const Shape inverse = axis ? Shape{size_at(call, shape, *axis)} : shape;
  return {ir::TensorType{call.dtype_of("self"), values},
          indices_if(call.flag("return_inverse"), inverse),
          indices_if(call.flag("return_counts"), {count})};
}

Results unique_inverse(Call& call) {
  const Int count = call.unknown_size(0, 0);
  return {ir::TensorType{call.dtype_of("self"), {count}},
          indices_if(call.flag("return_inverse"), call.shape("self"))};
}

Results unique(Call& call) { return unique_along(call, std::nullopt); }
Results unique_dim(Call& call) {
  return unique_along(call, optional_axis(call, "dim", call.rank("self")));
}

Results unique_dim_all(Call& call) {
  // Along an axis, torch gives the places and the counts whether asked or not.
  const Shape& shape = call.shape("self");
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  const Int count = call.unknown_size(0, axis);
  return {ir::TensorType{call.dtype_of("self"), with_size(shape, axis, count)},
          ir::TensorType{Dtype::i64, {size_at(call, shape, axis)}},
          ir::TensorType{Dtype::i64, {count}}};
}

Results one_hot(Call& call) {
  const std::int64_t classes = call.number("num_classes");
  const Int size = classes >= 0 ? Int(classes) : call.unknown_size(0, call.shape("self").size());
  return one(Dtype::i64, joined(call.shape("self"), {size}));
}

/// A number read out of a tensor. Its value in the example run stands where a size would.
Results item(Call& call) {
  const Dtype dtype = call.dtype_of("self");
  if (dtype == Dtype::boolean) return {ir::ScalarType{call.dims().fresh_bool(false)}};
  if (is_integral(dtype)) {
    const shape::Range any{shape::Range::kUnboundedBelow, shape::Range::kUnbounded};
    return {ir::ScalarType{call.unknown_size(0, 0, any)}};
  }
  return {ir::ScalarType{call.dims().fresh_real(0)}};
}

constexpr std::array kCountedOps{
    OpDef{.name = "aten._local_scalar_dense",
          .schema = "(Tensor self) -> Scalar",
          .infer = item,
          .handling = Handling::read_number,
          .onnx = custom(onnx::item),
          .executorch = direct("aten::_local_scalar_dense"),
          .samples = "i64[]; f32[1]; bool[]"},
    OpDef{
        .name = "aten._unique",
        .schema = "(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
        .infer = unique_inverse,
        .onnx = custom(onnx::unique),
        .executorch = custom(executorch::unique),
        .samples = "i64<4>[a, b]; i64<4>[a], True, True"},
    OpDef{.name = "aten._unique2",
          .schema = "(Tensor self, bool sorted=True, bool return_inverse=False, bool "
                    "return_counts=False) -> (Tensor, Tensor, Tensor)",
          .infer = unique,
          .onnx = custom(onnx::unique),
          .executorch = custom(executorch::unique),
          .samples = "i64<4>[a, b]; i64<4>[a], True, True; i64<4>[a, b], True, False, True; "
                     "f32[a], True, True; bool[a, b], True, True, True; i32<4>[a, b], True, True, "
                     "True; f64[a], False, True, True"},
    OpDef{.name = "aten.argwhere",
          .schema = "(Tensor self) -> Tensor",
          .infer = nonzero,
          .onnx = custom(onnx::nonzero),
          .executorch = direct("aten::nonzero.out"),
          .samples = "f32[a, b]; bool[a]"},
    OpDef{.name = "aten.item",
          .schema = "(Tensor self) -> Scalar",
          .infer = item,
          .handling = Handling::read_number,
          .onnx = custom(onnx::item),
          .executorch = direct("aten::_local_scalar_dense"),
          .samples = "i64[]; f32[1]; bool[]"},
    OpDef{.name = "aten.masked_select",
          .schema = "(Tensor self, Tensor mask) -> Tensor",
          .infer = masked_select,
          .onnx = custom(onnx::masked_select),
          .executorch = custom(executorch::masked_select),
          .samples = "f32[a, b], bool[a, b]; f32[a, b], bool[b]; bool[a, b], bool[a, 1]; c64[a], "
                     "bool[a]; bf16[a, b], bool[b]; f32[b], bool[a, 1]"},
    OpDef{.name = "aten.nonzero",
          .schema = "(Tensor self) -> Tensor",
          .infer = nonzero,
          .onnx = custom(onnx::nonzero),
          .samples = "f32[a, b]; bool[a]; i64[]; f64[a, b]; i16[a]; f16[a, 2, b]; i64[0, b]"},
    OpDef{.name = "aten.nonzero_numpy",
          .schema = "(Tensor self) -> Tensor[]",
          .infer = nonzero_numpy,
          .onnx = custom(onnx::nonzero_lists),
          .executorch = custom(executorch::nonzero_columns),
          .samples = "f32[a, b]; bool[a]; i64[a, 2, b]"},
    OpDef{.name = "aten.nonzero_static",
          .schema = "(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
          .infer = nonzero_static,
          .onnx = custom(onnx::nonzero_static),
          .executorch =
              refuse("the runtime has no kernel that fills up the places it finds; nonzero works"),
          .samples = "i64[a, b], size=4; bool[a], size=b; bool[a, 3], size=a, fill_value=7"},
    OpDef{.name = "aten.one_hot",
          .schema = "(Tensor self, int num_classes=-1) -> Tensor",
          .infer = one_hot,
          .onnx = custom(onnx::one_hot),
          .executorch = decompose(parts::one_hot),
          .samples = "i64<4>[a, b], 5; i64<4>[a]; i64<4>[], 4"},
    OpDef{.name = "aten.unique_consecutive",
          .schema = "(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
                    "dim=None) -> (Tensor, Tensor, Tensor)",
          .infer = unique_dim,
          .onnx = custom(onnx::unique_consecutive),
          .executorch = custom(executorch::unique_consecutive),
          .samples =
              "i64<4>[a, b]; i64<4>[a], True, True; i64<2>[a, b], True, True, 1; f32[a, b, 2], "
              "True, True, 1; bool[a], True, True; i64<2>[0], True, True; i64<2>[1], True, True"},
    OpDef{.name = "aten.unique_dim",
          .schema = "(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
                    "return_counts=False) -> (Tensor, Tensor, Tensor)",
          .infer = unique_dim_all,
          .onnx = custom(onnx::unique_along),
          .executorch = refuse("the runtime has no kernel for elements that differ"),
          .samples = "i64<2>[a, b], 0; i64<2>[a, b], -1, True, True, True; f32[a, b], 1, True, "
                     "True, True; i64<2>[a, 2, 2], 0, True, True, True"},
    OpDef{.name = "aten.unique_dim_consecutive",
          .schema = "(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) "
                    "-> (Tensor, Tensor, Tensor)",
          .infer = unique_dim_all,
          .onnx = custom(onnx::unique_consecutive),
          .executorch = custom(executorch::unique_consecutive),
          .samples = "i64<2>[a, b], 0; i64<2>[a, b], -1, True, True; bool[a, 1], 0, True, True"},
    OpDef{.name = "aten.where",
          .schema = "(Tensor condition) -> Tensor[]",
          .infer = where,
          .onnx = custom(onnx::nonzero_lists),
          .executorch = custom(executorch::nonzero_columns),
          .samples = "bool[a, b]; bool[a]"},
};
static_assert(first_bad_row(kCountedOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> counted_ops() { return kCountedOps; }

}  // namespace modelport::ops