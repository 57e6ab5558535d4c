// Matrices: norms, determinants, inverses, decompositions, solvers; differences along an axis.
#include "ops/onnx/matrix.h"

#include <array>

#include "ops/decompositions/linear.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

std::string_view matrix_name(Call& call) {
  return schema_of(call.op()).find("A") != nullptr ? "A" : "self";
}

/// [..., n, n]; the sizes of the last two axes are settled to be the same.
const Shape& square(Call& call) {
  const Shape& shape = call.shape(matrix_name(call));
  call.require(shape.size() >= 2 && call.equal(shape.back(), shape[shape.size() - 2]),
               "a matrix that is not square");
  return shape;
}

Shape batch_of(Call& call, const Shape& shape) {
  call.require(shape.size() >= 2, "a matrix is needed");
  return leading(shape, static_cast<std::int64_t>(shape.size()) - 2);
}

Results matrix_norm(Call& call) {
  const Dtype dtype = call.dtype("dtype").value_or(to_real(call.dtype_of("self")));
  const std::vector<std::int64_t> axes = axes_of(call, "dim", call.rank("self"));
  return one(to_real(dtype), reduce(call.shape("self"), axes, call.flag("keepdim")));
}

Results like_square(Call& call) { return one(call.dtype_of(matrix_name(call)), square(call)); }

Results det(Call& call) {
  return one(call.dtype_of(matrix_name(call)), batch_of(call, square(call)));
}

Results slogdet(Call& call) {
  const Dtype dtype = call.dtype_of(matrix_name(call));
  const Shape batch = batch_of(call, square(call));
  return {ir::TensorType{dtype, batch}, ir::TensorType{to_real(dtype), batch}};
}

Results with_info(Call& call) {
  return {ir::TensorType{call.dtype_of(matrix_name(call)), square(call)},
          ir::TensorType{Dtype::i32, batch_of(call, square(call))}};
}

/// Broadcasts the batches of both sides; the result has the matrix of the right-hand side.
Results solve_triangular(Call& call) {
  const Shape& b = call.shape("B");
  const Shape batch = broadcast(call, batch_of(call, square(call)), batch_of(call, b));
  const Int& rows = call.flag("left") ? b[b.size() - 2] : b.back();
  call.require(call.equal(rows, square(call).back()), "sides that do not fit");
  return one(call.dtype_of("B"), joined(batch, from(b, call.rank("B") - 2)));
}

Results solve(Call& call) {
  const Shape& a = square(call);
  const Shape& b = call.shape("B");
  // Torch takes B for a batch of vectors where it has one axis, or the shape of A's batch and rows.
  bool vectors = b.size() == 1;
  if (!vectors && a.size() == b.size() + 1) {
    vectors = true;
    for (std::size_t i = 0; i < b.size(); ++i) vectors = vectors && call.equal(a[i], b[i]);
  }
  if (vectors) {
    const Shape batch = broadcast(call, batch_of(call, a), leading(b, call.rank("B") - 1));
    return one(call.dtype_of("B"), joined(batch, {b.back()}));
  }
  const Shape batch = broadcast(call, batch_of(call, a), batch_of(call, b));
  return one(call.dtype_of("B"), joined(batch, from(b, call.rank("B") - 2)));
}

Results cholesky_solve(Call& call) {
  const Shape& b = call.shape("self");
  const Shape batch = broadcast(call, batch_of(call, b), batch_of(call, call.shape("input2")));
  return one(call.dtype_of("self"), joined(batch, from(b, call.rank("self") - 2)));
}

Results eigh(Call& call) {
  const Dtype dtype = call.dtype_of("self");
  const Shape& shape = square(call);
  return {ir::TensorType{to_real(dtype), without_axis(shape, call.rank("self") - 1)},
          ir::TensorType{dtype, shape}};
}

Results eigvalsh(Call& call) { return {eigh(call)[0]}; }

Results eig(Call& call) {
  const Dtype dtype = to_complex(call.dtype_of("self"));
  const Shape& shape = square(call);
  return {ir::TensorType{dtype, without_axis(shape, call.rank("self") - 1)},
          ir::TensorType{dtype, shape}};
}

Int smaller_side(Call& call, const Shape& shape) {
  return clamp_above(call, size_at(call, shape, -2), size_at(call, shape, -1));
}

Results qr(Call& call) {
  const Shape& shape = call.shape("A");
  const Dtype dtype = call.dtype_of("A");
  const std::string_view mode = call.string("mode");
  const Shape batch = batch_of(call, shape);
  const Int& rows = size_at(call, shape, -2);
  const Int inner = mode == "complete" ? rows : smaller_side(call, shape);
  const Shape q = mode == "r" ? Shape{0} : joined(batch, {rows, inner});
  return {ir::TensorType{dtype, q}, ir::TensorType{dtype, joined(batch, {inner, shape.back()})}};
}

Results svd(Call& call) {
  const Shape& shape = call.shape("A");
  const Dtype dtype = call.dtype_of("A");
  const Int inner = smaller_side(call, shape);
  const Shape batch = batch_of(call, shape);
  const bool full = call.flag("full_matrices");
  const Int& rows = size_at(call, shape, -2);
  const Int& columns = shape.back();
  return {ir::TensorType{dtype, joined(batch, {rows, full ? rows : inner})},
          ir::TensorType{to_real(dtype), joined(batch, {inner})},
          ir::TensorType{dtype, joined(batch, {full ? columns : inner, columns})}};
}

Results svdvals(Call& call) {
  const Shape& shape = call.shape("A");
  return one(to_real(call.dtype_of("A")),
             joined(batch_of(call, shape), {smaller_side(call, shape)}));
}

Results pinv(Call& call) {
  Shape shape = call.shape("self");
  call.require(shape.size() >= 2, "a matrix is needed");
  std::swap(shape[shape.size() - 2], shape.back());
  return one(call.dtype_of("self"), std::move(shape));
}

Results trace(Call& call) {
  const Dtype dtype = call.dtype_of("self");
  const bool counts = is_integral(dtype) || dtype == Dtype::boolean;
  return one(counts ? Dtype::i64 : dtype, {});
}

Results diff(Call& call) {
  const std::int64_t axis = axis_of(call, "dim", call.rank("self"));
  Int size = size_at(call, call.shape("self"), axis);
  Dtype dtype = call.dtype_of("self");
  for (const std::string_view edge : {"prepend", "append"}) {
    if (!call.has(edge)) continue;
    size += call.shape(edge).empty() ? Int(1) : size_at(call, call.shape(edge), axis);
    dtype = promote(dtype, call.dtype_of(edge));
  }
  size = clamp_below(call, size - call.integer("n"), 0);
  return one(dtype, with_size(call.shape("self"), axis, size));
}

constexpr std::array kMatrixOps{
    OpDef{.name = "aten.cholesky",
          .schema = "(Tensor self, bool upper=False) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::cholesky),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 1, 1]; f64[1, 1], True"},
    OpDef{.name = "aten.cholesky_solve",
          .schema = "(Tensor self, Tensor input2, bool upper=False) -> Tensor",
          .infer = cholesky_solve,
          .onnx = custom(onnx::cholesky_solve),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 2], f32[1, 3, 3]; f32[3, b], f32[3, 3]"},
    OpDef{.name = "aten.det",
          .schema = "(Tensor self) -> Tensor",
          .infer = det,
          .onnx = custom(onnx::det),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.diff",
          .schema = "(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) "
                    "-> Tensor",
          .infer = diff,
          .onnx = custom(onnx::diff),
          .executorch = decompose(parts::diff),
          .samples = "f32[a, b]; f32[a, b], 2, 0; i64[a, b], 1, -1, i64[a, 1], i64[a, 3]; bool[a]"},
    OpDef{.name = "aten.inverse",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::inverse),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_cholesky",
          .schema = "(Tensor self, *, bool upper=False) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::cholesky),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 1, 1]; f64[1, 1], upper=True"},
    OpDef{.name = "aten.linalg_cholesky_ex",
          .schema = "(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
                    "Tensor info)",
          .infer = with_info,
          .onnx = refuse("ONNX has no Cholesky decomposition that says where it failed; "
                         "linalg.cholesky is there"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_det",
          .schema = "(Tensor A) -> Tensor",
          .infer = det,
          .onnx = custom(onnx::det),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_eig",
          .schema = "(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
          .infer = eig,
          .onnx = refuse("ONNX has no eigenvalues"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_eigh",
          .schema = "(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
          .infer = eigh,
          .onnx = refuse("ONNX has no eigenvalues"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_eigvalsh",
          .schema = "(Tensor self, str UPLO=\"L\") -> Tensor",
          .infer = eigvalsh,
          .onnx = refuse("ONNX has no eigenvalues"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_inv",
          .schema = "(Tensor A) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::inverse),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_inv_ex",
          .schema = "(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
          .infer = with_info,
          .onnx = custom(onnx::inverse),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_matrix_exp",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::matrix_exp),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_matrix_norm",
          .schema = "(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
                    "ScalarType? dtype=None) -> Tensor",
          .infer = matrix_norm,
          .onnx = custom(onnx::matrix_norm),
          .executorch = decompose(parts::matrix_norm),
          .samples = "f32[a, b, 3], 1; f32[a, b, 3], 1, [0, 1], True; f32[a, b, 3], -1"},
    OpDef{.name = "aten.linalg_matrix_norm.str_ord",
          .schema = "(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, "
                    "ScalarType? dtype=None) -> Tensor",
          .infer = matrix_norm,
          .onnx = custom(onnx::matrix_norm),
          .executorch = decompose(parts::matrix_norm),
          .samples = "f32[a, b, 3]; f32[a, b, 3], \"fro\", [0, 1], True"},
    OpDef{.name = "aten.linalg_matrix_power",
          .schema = "(Tensor self, int n) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::matrix_power),
          .executorch = decompose(parts::matrix_power),
          .samples = "f32[a, 3, 3], 2; f64[4, 4], 0"},
    OpDef{.name = "aten.linalg_norm",
          .schema = "(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
                    "ScalarType? dtype=None) -> Tensor",
          .infer = matrix_norm,
          .onnx = custom(onnx::matrix_norm),
          .executorch = decompose(parts::matrix_norm),
          .samples = "f32[a, b]; f32[a, b, 3], None, [-1], True; f32[a, b], 1, [0, 1]; f32[a, b], "
                     "2.0, [1]; c64[a, b]"},
    OpDef{.name = "aten.linalg_norm.ord_str",
          .schema = "(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                    "dtype=None) -> Tensor",
          .infer = matrix_norm,
          .onnx = custom(onnx::matrix_norm),
          .executorch = decompose(parts::matrix_norm),
          .samples = "f32[a, b], \"fro\"; f32[a, b, 3], \"fro\", [0, 1], True"},
    OpDef{
        .name = "aten.linalg_pinv.atol_rtol_float",
        .schema =
            "(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
        .infer = pinv,
        .onnx = refuse("a pseudoinverse needs singular values, which ONNX has not"),
        .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
        .samples = "f32[a, b, 3]; f64[a, b]"},
    OpDef{.name = "aten.linalg_qr",
          .schema = "(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
          .infer = qr,
          .onnx = refuse("ONNX has no QR decomposition"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3]; f32[a, b], \"complete\"; f32[a, b], \"r\""},
    OpDef{.name = "aten.linalg_slogdet",
          .schema = "(Tensor A) -> (Tensor sign, Tensor logabsdet)",
          .infer = slogdet,
          .onnx = custom(onnx::slogdet),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.linalg_solve",
          .schema = "(Tensor A, Tensor B, *, bool left=True) -> Tensor",
          .infer = solve,
          .onnx = custom(onnx::solve),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3], f32[a, 3, b]; f32[3, 3], f32[3]; f32[a, 3, 3], f32[a, 3]; "
                     "f32[3, 3], f32[a, b, 3], left=False; f64[2, 5, 5], f64[a, 1, 5, b]"},
    OpDef{.name = "aten.linalg_solve_triangular",
          .schema = "(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
                    "unitriangular=False) -> Tensor",
          .infer = solve_triangular,
          .onnx = custom(onnx::solve_triangular),
          .executorch = decompose(parts::solve_triangular),
          .samples = "f32[a, 3, 3], f32[a, 3, b], upper=True; f32[3, 3], f32[a, b, 3], "
                     "upper=False, left=False, unitriangular=True; f32[a, 13, 13], f32[a, 13, b], "
                     "upper=False, unitriangular=True; f64[2, 6, 6], f64[a, 2, b, 6], upper=True, "
                     "left=False"},
    OpDef{.name = "aten.linalg_svd",
          .schema = "(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor "
                    "S, Tensor Vh)",
          .infer = svd,
          .onnx = refuse("ONNX has no singular values"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3]; f32[a, b], False"},
    OpDef{.name = "aten.linalg_svdvals",
          .schema = "(Tensor A, *, str? driver=None) -> Tensor",
          .infer = svdvals,
          .onnx = refuse("ONNX has no singular values"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3]; f64[a, b]"},
    OpDef{.name = "aten.logdet",
          .schema = "(Tensor self) -> Tensor",
          .infer = det,
          .onnx = custom(onnx::logdet),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.matrix_exp",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::matrix_exp),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.matrix_power",
          .schema = "(Tensor self, int n) -> Tensor",
          .infer = like_square,
          .onnx = custom(onnx::matrix_power),
          .executorch = decompose(parts::matrix_power),
          .samples = "f32[a, 3, 3], 2; f64[4, 4], 0; f32[a, 3, 3], 5; f64[4, 4], -2"},
    OpDef{.name = "aten.pinverse",
          .schema = "(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor",
          .infer = pinv,
          .onnx = refuse("a pseudoinverse needs singular values, which ONNX has not"),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3]; f64[a, b]"},
    OpDef{.name = "aten.slogdet",
          .schema = "(Tensor self) -> (Tensor sign, Tensor logabsdet)",
          .infer = slogdet,
          .onnx = custom(onnx::slogdet),
          .executorch = refuse("the runtime has no kernel that takes a matrix apart"),
          .samples = "f32[a, b, 3, 3]; f64[4, 4]"},
    OpDef{.name = "aten.trace",
          .schema = "(Tensor self) -> Tensor",
          .infer = trace,
          .onnx = custom(onnx::trace),
          .executorch = decompose(parts::trace),
          .samples = "f32[a, b]; i32[a, a]"},
};
static_assert(first_bad_row(kMatrixOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> matrix_ops() { return kMatrixOps; }

}  // namespace modelport::ops