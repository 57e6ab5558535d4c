// ONNX cells of matrices: norms, determinants, inverses, solvers, powers.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// Rows and columns of a square matrix whose size is known and small enough to be spelled out.
std::int64_t known_size(Lower& l, const Int& size, std::int64_t most);
/// The matrix with ones on its diagonal.
Value identity(Lower& l, const Int& size, Dtype dtype);
/// The inverse of a triangular matrix [..., n, n].
Value triangular_inverse(Lower& l, Value x, bool upper, bool unit);

Values matrix_norm(Lower& l);
Values trace(Lower& l);
Values diff(Lower& l);
Values matrix_power(Lower& l);
Values matrix_exp(Lower& l);

// solve.cc
Value inverse_of(Lower& l, Value x);
Values det(Lower& l);
Values logdet(Lower& l);
Values slogdet(Lower& l);
Values inverse(Lower& l);  // alone, or with info
Values solve(Lower& l);
Values solve_triangular(Lower& l);
Values cholesky(Lower& l);
Values cholesky_solve(Lower& l);

}  // namespace modelport::ops::onnx
