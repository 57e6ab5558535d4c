// Indexing, searching and sorting in other rows.
#pragma once

#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

// Picking.
Value one_hot(emit::Emitter& e);
Value take(emit::Emitter& e);
Value take_along_dim(emit::Emitter& e);
Value unsafe_index(emit::Emitter& e);

// Putting.
Value index_add(emit::Emitter& e);
Value index_copy(emit::Emitter& e);
Value index_fill(emit::Emitter& e);
Value index_reduce(emit::Emitter& e);
Value masked_fill(emit::Emitter& e);
Value put(emit::Emitter& e);
Value scatter_reduce(emit::Emitter& e);
Value scatter_reduced_by(emit::Emitter& e);
Value unsafe_index_put(emit::Emitter& e);

// Searching.
Value argsort(emit::Emitter& e);
Value bucketize(emit::Emitter& e);
Value isin(emit::Emitter& e);
Values kthvalue(emit::Emitter& e);
Value msort(emit::Emitter& e);
Value searchsorted(emit::Emitter& e);
Values sort(emit::Emitter& e);

}  // namespace modelport::ops::parts
