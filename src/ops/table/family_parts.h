// The large families are kept in several files, one part each; `family_parts.cc` joins them.
#pragma once

#include <span>

#include "ops/table/op.h"

namespace modelport::ops {

// shape_ops
std::span<const OpDef> view_ops();  // every element stays, under other sizes
std::span<const OpDef> axes_ops();  // axes or elements in another order
std::span<const OpDef> cut_ops();   // parts of a tensor, and writing them back
std::span<const OpDef> join_ops();  // tensors put together or repeated
std::span<const OpDef> pad_ops();   // borders, patches, triangles

// indexing_ops
std::span<const OpDef> pick_ops();     // elements picked by index
std::span<const OpDef> put_ops();      // elements written by index
std::span<const OpDef> search_ops();   // sorting and searching
std::span<const OpDef> counted_ops();  // how many results there are depends on the data

// linear_ops
std::span<const OpDef> product_ops();    // matrix products
std::span<const OpDef> attention_ops();  // attention, grouped products, distances

// neural_ops
std::span<const OpDef> convolution_ops();
std::span<const OpDef> pool_ops();
std::span<const OpDef> normalize_ops();
std::span<const OpDef> resample_ops();  // upsampling, grids
std::span<const OpDef> recurrent_ops();

// spectral_ops
std::span<const OpDef> fourier_ops();
std::span<const OpDef> matrix_ops();  // decompositions, solvers, norms of matrices

}  // namespace modelport::ops
