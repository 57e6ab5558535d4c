// Products of matrices and vectors.
#include "ops/onnx/product.h"

#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/linear.h"
#include "ops/executorch/adjust.h"
#include "ops/rules/axes.h"
#include "ops/rules/einsum.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"
#include "ops/xnnpack/product.h"

namespace modelport::ops {
namespace {

void meet(Call& call, const Int& a, const Int& b) {
  call.require(call.equal(a, b), "the sizes of a product do not fit");
}

/// [n] and [m, k] as matmul reads them: a vector is a row on the left, a column on the right.
Shape matmul_shape(Call& call, Shape a, Shape b) {
  call.require(!a.empty() && !b.empty(), "matmul takes no numbers");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  meet(call, a.back(), b[b.size() - 2]);
  const auto batch = [](const Shape& shape) {
    return leading(shape, static_cast<std::int64_t>(shape.size()) - 2);
  };
  Shape result = broadcast(call, batch(a), batch(b));
  if (!row) result.push_back(a[a.size() - 2]);
  if (!column) result.push_back(b.back());
  return result;
}

Results matmul(Call& call) {
  return one(call.dtype_of("self"), matmul_shape(call, call.shape("self"), call.shape("other")));
}

Results linear(Call& call) {
  const Shape& input = call.shape("input");
  const Shape& weight = call.shape("weight");
  call.require(!input.empty() && !weight.empty() && weight.size() <= 2, "linear takes a matrix");
  meet(call, input.back(), weight.back());
  Shape result = without_axis(input, call.rank("input") - 1);
  if (weight.size() == 2) result.push_back(weight[0]);
  return one(call.dtype_of("input"), std::move(result));
}

/// mm, bmm and what adds to them: matrices [n, k] and [k, m], with a batch or without.
Shape product(Call& call, std::string_view left, std::string_view right, std::size_t rank) {
  const Shape& a = call.shape(left);
  const Shape& b = call.shape(right);
  call.require(a.size() == rank && b.size() == rank, "a product of the wrong rank");
  meet(call, a.back(), b[rank - 2]);
  Shape result = a;
  if (rank == 3) result[0] = agreed(call, a[0], b[0]);
  result.back() = b.back();
  return result;
}

Dtype dtype_asked(Call& call) {
  const bool named = schema_of(call.op()).find("out_dtype") != nullptr;
  return named ? call.dtype("out_dtype").value_or(call.dtype_of("self")) : call.dtype_of("self");
}

Results mm(Call& call) { return one(dtype_asked(call), product(call, "self", "mat2", 2)); }
Results bmm(Call& call) { return one(dtype_asked(call), product(call, "self", "mat2", 3)); }
Results int_mm(Call& call) { return one(Dtype::i32, product(call, "self", "mat2", 2)); }

Results added(Call& call, const Shape& result) {
  const Shape& self = call.shape("self");
  call.require(self.size() <= result.size(), "what is added has too many axes");
  const std::size_t lead = result.size() - self.size();
  for (std::size_t i = 0; i < self.size(); ++i) expanded(call, self[i], result[lead + i]);
  return one(dtype_asked(call), result);
}

Results addmm(Call& call) { return added(call, product(call, "mat1", "mat2", 2)); }
Results baddbmm(Call& call) { return added(call, product(call, "batch1", "batch2", 3)); }
Results addbmm(Call& call) {
  return added(call, without_axis(product(call, "batch1", "batch2", 3), 0));
}

Results mv(Call& call) {
  meet(call, size_at(call, call.shape("self"), 1), size_at(call, call.shape("vec"), 0));
  return one(call.dtype_of("self"), {call.shape("self")[0]});
}

Results addmv(Call& call) {
  meet(call, size_at(call, call.shape("mat"), 1), size_at(call, call.shape("vec"), 0));
  return added(call, {call.shape("mat")[0]});
}

Results addr(Call& call) {
  const Shape result{size_at(call, call.shape("vec1"), 0), size_at(call, call.shape("vec2"), 0)};
  added(call, result);
  return one(promote(call, {"self", "vec1", "vec2"}), result);
}

Results dot(Call& call) {
  const std::string_view other = call.op().name == "aten.dot" ? "tensor" : "other";
  meet(call, size_at(call, call.shape("self"), 0), size_at(call, call.shape(other), 0));
  return one(call.dtype_of("self"), {});
}

Results outer(Call& call) {
  return one(promote(call, {"self", "vec2"}),
             {size_at(call, call.shape("self"), 0), size_at(call, call.shape("vec2"), 0)});
}

Results inner(Call& call) {
  const Shape& a = call.shape("self");
  const Shape& b = call.shape("other");
  if (a.empty() || b.empty()) return one(promote(call, {"self", "other"}), joined(a, b));
  meet(call, a.back(), b.back());
  return one(call.dtype_of("self"), joined(without_axis(a, call.rank("self") - 1),
                                           without_axis(b, call.rank("other") - 1)));
}

Results tensordot(Call& call) {
  const std::vector<std::int64_t> left = axis_list(call, "dims_self", call.rank("self"));
  const std::vector<std::int64_t> right = axis_list(call, "dims_other", call.rank("other"));
  call.require(left.size() == right.size(), "as many axes on both sides");
  for (std::size_t i = 0; i < left.size(); ++i) {
    broadcast(call, call.shape("self")[left[i]], call.shape("other")[right[i]]);
  }
  return one(call.dtype_of("self"), joined(reduce(call.shape("self"), left, false),
                                           reduce(call.shape("other"), right, false)));
}

Results einsum(Call& call) {
  const std::vector<const ir::TensorType*> operands = all_tensors(call, "tensors");
  call.require(!operands.empty(), "einsum of no tensors");
  std::vector<Shape> shapes;
  for (const ir::TensorType* operand : operands) shapes.push_back(operand->shape);
  return one(operands.front()->dtype, einsum_shape(call, call.string("equation"), shapes));
}

Results chain(Call& call) {
  const bool multi = call.op().name == "aten.linalg_multi_dot";
  const std::vector<const ir::TensorType*> operands =
      all_tensors(call, multi ? "tensors" : "matrices");
  call.require(!operands.empty(), "a product of no matrices");
  Shape result = operands.front()->shape;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    result = matmul_shape(call, std::move(result), operands[i]->shape);
  }
  return one(operands.front()->dtype, std::move(result));
}

Results bilinear(Call& call) {
  const Shape& weight = call.shape("weight");
  call.require(weight.size() == 3, "bilinear takes a weight with three axes");
  meet(call, size_at(call, call.shape("input1"), -1), weight[1]);
  meet(call, size_at(call, call.shape("input2"), -1), weight[2]);
  Shape result = leading(call.shape("input1"), call.rank("input1") - 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = agreed(call, result[i], size_at(call, call.shape("input2"), i));
  }
  result.push_back(weight[0]);
  return one(call.dtype_of("input1"), std::move(result));
}

Results kron(Call& call) {
  Shape a = call.shape("self");
  Shape b = call.shape("other");
  while (a.size() < b.size()) a.insert(a.begin(), 1);
  while (b.size() < a.size()) b.insert(b.begin(), 1);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return one(promote(call, {"self", "other"}), std::move(a));
}

constexpr std::array kProductOps{
    OpDef{.name = "aten._int_mm",
          .schema = "(Tensor self, Tensor mat2) -> Tensor",
          .infer = int_mm,
          .onnx = custom(onnx::int_mm),
          .executorch = decompose(parts::int_mm),
          .samples = "i8[a + 16, 8], i8[8, 16]; i8[a + 20, 16], i8[16, 8]"},
    OpDef{
        .name = "aten.addbmm",
        .schema = "(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
                  "-> Tensor",
        .infer = addbmm,
        .onnx = custom(onnx::added_product),
        .executorch = decompose(parts::addbmm),
        .samples = "f32[2, c], f32[a, 2, b], f32[a, b, c]; f32[1, 1], f32[a, 2, b], f32[a, b, c]"},
    OpDef{.name = "aten.addmm",
          .schema =
              "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          .infer = addmm,
          .onnx = custom(onnx::added_product),
          .xnnpack = custom(xnnpack::addmm),
          .samples =
              "f32[c], f32[a, b], f32[b, c]; f32[1, 4], f32[a, b], f32[b, 4], beta=2, alpha=0.5; "
              "f32[], f32[a, b], f32[b, c], beta=0; bf16[c], bf16[a, b], bf16[b, c]"},
    OpDef{.name = "aten.addmv",
          .schema =
              "(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          .infer = addmv,
          .onnx = custom(onnx::added_product),
          .executorch = decompose(parts::addmv),
          .samples = "f32[a], f32[a, b], f32[b]; f32[1], f32[3, a], f32[a]"},
    OpDef{.name = "aten.addr",
          .schema =
              "(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
          .infer = addr,
          .onnx = custom(onnx::added_product),
          .executorch = decompose(parts::addr),
          .samples = "f32[a, b], f32[a], f32[b]; f32[1, b], f32[3], f32[b]"},
    OpDef{.name = "aten.baddbmm",
          .schema = "(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
                    "-> Tensor",
          .infer = baddbmm,
          .onnx = custom(onnx::added_product),
          .executorch = decompose(parts::baddbmm),
          .samples = "f32[a, 2, c], f32[a, 2, b], f32[a, b, c]; f32[1, 1, 1], f32[a, 2, b], f32[a, "
                     "b, c]; f32[c], f32[a, 2, b], f32[a, b, c], beta=0"},
    OpDef{
        .name = "aten.bilinear",
        .schema = "(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
        .infer = bilinear,
        .onnx = custom(onnx::bilinear),
        .executorch = decompose(parts::bilinear),
        .samples =
            "f32[a, b, 3], f32[a, b, 4], f32[5, 3, 4]; f32[a, 3], f32[a, 2], f32[4, 3, 2], f32[4]"},
    OpDef{.name = "aten.bmm",
          .schema = "(Tensor self, Tensor mat2) -> Tensor",
          .infer = bmm,
          .layout = Layout::dense,
          .onnx = custom(onnx::matmul),
          .xnnpack = custom(xnnpack::matmul),
          .pairs = decompose(parts::pairs_product),
          .samples = "f32[a, b, 3], f32[a, 3, c]; f32[2, b, 4], f32[2, 4, 3]"},
    OpDef{.name = "aten.chain_matmul",
          .schema = "(Tensor[] matrices) -> Tensor",
          .infer = chain,
          .onnx = custom(onnx::chain),
          .executorch = decompose(parts::multi_dot),
          .samples = "[f32[a, b], f32[b, c], f32[c, 2]]; [f32[a, b], f32[b, 3]]"},
    OpDef{.name = "aten.dot",
          .schema = "(Tensor self, Tensor tensor) -> Tensor",
          .infer = dot,
          .onnx = custom(onnx::dot),
          .executorch = decompose(parts::dot),
          .samples = "f32[a], f32[a]; i64[3], i64[3]"},
    OpDef{
        .name = "aten.einsum",
        .schema = "(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
        .infer = einsum,
        .onnx = custom(onnx::einsum),
        .executorch = decompose(parts::einsum),
        .samples =
            "\"ij,jk->ik\", [f32[a, b], f32[b, c]]; \"bhld,bhmd->bhlm\", [f32[a, 2, b, 3], "
            "f32[a, 2, c, 3]]; \"...ij,...j->...i\", [f32[a, 2, b], f32[a, b]]; \"ij->ji\", "
            "[f32[a, b]]; \"i,j\", [f32[a], f32[b]]; \"ba,ac\", [f32[a, b], f32[b, c]]; "
            "\"ii->i\", [f32[a, a]]; \"ij -> \", [f32[a, b]]; \"b...d,cd->b...c\", [f32[a, "
            "b, 2, 3], f32[c, 3]]; \"...j,k...j\", [f32[a, b], f32[c, a, b]]; \"abc,cd,de->abe\", "
            "[f32[a, b, 3], f32[3, c], f32[c, 2]]; \"bhwc,hkc->bhwk\", [f32[a, b, 2, 3], f32[b, c, "
            "3]]; \"bi,bj,bk->bijk\", [f32[a, b], f32[a, 2], f32[a, 3]]; \"ij,ij->i\", [f32[a, 1], "
            "f32[a, b]]; \"abcd,cd->ab\", [bf16[a, b, 2, 3], bf16[2, 3]]; \"bnd,md->nbm\", [f32[a, "
            "b, 3], f32[c, 3]]; \"i,ij,j\", [f32[a], f32[a, b], f32[b]]; \"iij->j\", [f32[a, a, "
            "b]]; \"...ik,...kj\", [c64[a, 2, b], c64[b, 3]]"},
    OpDef{.name = "aten.ger",
          .schema = "(Tensor self, Tensor vec2) -> Tensor",
          .infer = outer,
          .onnx = custom(onnx::outer),
          .executorch = decompose(parts::outer),
          .samples = "f32[a], f32[b]; i64[a], f32[3]"},
    OpDef{.name = "aten.inner",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = inner,
          .onnx = custom(onnx::inner),
          .executorch = decompose(parts::inner),
          .samples = "f32[a, b], f32[c, b]; f32[b], f32[b]; f32[], f32[a, 2]"},
    OpDef{.name = "aten.kron",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = kron,
          .onnx = custom(onnx::kron),
          .executorch = decompose(parts::kron),
          .samples = "f32[a, b], f32[b, 2]; f32[a], i64[b, 3]"},
    OpDef{.name = "aten.linalg_matmul",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = matmul,
          .onnx = custom(onnx::matmul),
          .executorch = decompose(parts::matmul),
          .samples = "f32[a, b], f32[b, c]; f32[a, 2, b], f32[a, b, c]"},
    OpDef{.name = "aten.linalg_multi_dot",
          .schema = "(Tensor[] tensors) -> Tensor",
          .infer = chain,
          .onnx = custom(onnx::chain),
          .executorch = decompose(parts::multi_dot),
          .samples = "[f32[a, b], f32[b, c], f32[c, 2]]; [f32[a], f32[a, b], f32[b]]"},
    OpDef{.name = "aten.linear",
          .schema = "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
          .infer = linear,
          .layout = Layout::dense,
          .onnx = custom(onnx::linear),
          .executorch = custom(executorch::linear),
          .xnnpack = custom(xnnpack::linear),
          .samples = "f32[a, b, 6], f32[5, 6]; f32[6], f32[5, 6], f32[5]; f32[a, 6], f32[6]; "
                     "f32[a, b, c, 4], f32[3, 4], f32[3]; bf16[a, b, 6], bf16[5, 6], bf16[5]; "
                     "f16[a, 6], f16[5, 6], f16[5]; f64[a, 6], f64[5, 6], f64[5]"},
    OpDef{.name = "aten.matmul",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = matmul,
          .layout = Layout::dense,
          .onnx = custom(onnx::matmul),
          .executorch = decompose(parts::matmul),
          .xnnpack = custom(xnnpack::matmul),
          .pairs = decompose(parts::pairs_product),
          .samples =
              "f32[a, b], f32[b, c]; f32[a, 2, b], f32[a, b, c]; f32[b], f32[a, b, c]; f32[a, 1, "
              "3, b], f32[2, b, c]; f32[a, b], f32[b]; f32[b], f32[b]; f32[3, a, b], f32[b, 4]; "
              "bf16[a, b], bf16[b, c]; i64[2, a, b], i64[b]; c64[a, b], c64[b, c]"},
    OpDef{.name = "aten.mm",
          .schema = "(Tensor self, Tensor mat2) -> Tensor",
          .infer = mm,
          .layout = Layout::dense,
          .onnx = custom(onnx::matmul),
          .xnnpack = custom(xnnpack::matmul),
          .pairs = decompose(parts::pairs_product),
          .samples = "f32[a, b], f32[b, c]; i64[a, 2], i64[2, c]"},
    OpDef{.name = "aten.mv",
          .schema = "(Tensor self, Tensor vec) -> Tensor",
          .infer = mv,
          .onnx = custom(onnx::matmul),
          .executorch = decompose(parts::mv),
          .samples = "f32[a, b], f32[b]; f32[3, a], f32[a]"},
    OpDef{.name = "aten.outer",
          .schema = "(Tensor self, Tensor vec2) -> Tensor",
          .infer = outer,
          .onnx = custom(onnx::outer),
          .executorch = decompose(parts::outer),
          .samples = "f32[a], f32[b]; i64[a], f32[3]"},
    OpDef{.name = "aten.tensordot",
          .schema = "(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
          .infer = tensordot,
          .onnx = custom(onnx::tensordot),
          .executorch = decompose(parts::tensordot),
          .samples = "f32[a, b, 3], f32[3, b, c], [1, 2], [1, 0]; f32[a, 2], f32[2, c], [-1], [0]; "
                     "f32[a, 1], f32[b, c], [1], [0]"},
    OpDef{.name = "aten.vdot",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = dot,
          .onnx = custom(onnx::dot),
          .executorch = decompose(parts::dot),
          .samples = "f32[a], f32[a]; i64[3], i64[3]"},
};
static_assert(first_bad_row(kProductOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> product_ops() { return kProductOps; }

}  // namespace modelport::ops