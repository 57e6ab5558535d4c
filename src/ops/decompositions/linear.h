// Products, attention and distances in other rows.
#pragma once

#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

// Products.
Value addbmm(emit::Emitter& e);
Value addmv(emit::Emitter& e);
Value addr(emit::Emitter& e);
Value baddbmm(emit::Emitter& e);
Value bilinear(emit::Emitter& e);
Value dot(emit::Emitter& e);
Value einsum(emit::Emitter& e);
Value inner(emit::Emitter& e);
Value int_mm(emit::Emitter& e);
Value kron(emit::Emitter& e);
Value matmul(emit::Emitter& e);
Value multi_dot(emit::Emitter& e);
Value mv(emit::Emitter& e);
Value outer(emit::Emitter& e);
Value tensordot(emit::Emitter& e);

// Pairs of vectors.
Value attention(emit::Emitter& e);
Values attention_with_sums(emit::Emitter& e);
Value cdist(emit::Emitter& e);
Value cosine_similarity(emit::Emitter& e);
Value cross(emit::Emitter& e);
Value grouped_mm(emit::Emitter& e);
Value pairwise_distance(emit::Emitter& e);
Value pdist(emit::Emitter& e);
Value vecdot(emit::Emitter& e);

// Matrices.
Value diff(emit::Emitter& e);
Value matrix_norm(emit::Emitter& e);
Value matrix_power(emit::Emitter& e);
Value solve_triangular(emit::Emitter& e);
Value trace(emit::Emitter& e);

}  // namespace modelport::ops::parts
