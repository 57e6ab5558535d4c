// Shapes in other rows: axes moved, tensors cut, joined and padded.
#pragma once

#include "ops/decompositions/complex.h"
#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

// Axes.
Value fftshift(emit::Emitter& e);
Value ifftshift(emit::Emitter& e);
Value channel_shuffle(emit::Emitter& e);
Value flip_left_right(emit::Emitter& e);
Value flip_up_down(emit::Emitter& e);
Value matrix_adjoint(emit::Emitter& e);
Value matrix_transpose(emit::Emitter& e);
Value move_axis(emit::Emitter& e);
Value move_axes(emit::Emitter& e);
Value reverse_axes(emit::Emitter& e);
Value rotate_quarters(emit::Emitter& e);
Value swap_axes(emit::Emitter& e);

// Sizes.
Value expand_to_result(emit::Emitter& e);
Values expand_each(emit::Emitter& e);

// Cuts.
Value as_strided_scatter(emit::Emitter& e);
Value diagonal_scatter(emit::Emitter& e);
Value linalg_diagonal(emit::Emitter& e);
Value narrow(emit::Emitter& e);
Values split_as_results(emit::Emitter& e);
Values unbind(emit::Emitter& e);

// Joins.
Value block_diag(emit::Emitter& e);
Value cartesian_prod(emit::Emitter& e);
Value column_stack(emit::Emitter& e);
Value concat(emit::Emitter& e);
Value dstack(emit::Emitter& e);
Value hstack(emit::Emitter& e);
Values meshgrid(emit::Emitter& e);
Value pad_sequence(emit::Emitter& e);
Value repeat_interleave(emit::Emitter& e);
Value tile(emit::Emitter& e);
Value vstack(emit::Emitter& e);

// Frames.
Value col2im(emit::Emitter& e);
Value diag_embed(emit::Emitter& e);
Value diagflat(emit::Emitter& e);
Value im2col(emit::Emitter& e);
Value pad(emit::Emitter& e);
Value pad_circular(emit::Emitter& e);
Value triu(emit::Emitter& e);

}  // namespace modelport::ops::parts
