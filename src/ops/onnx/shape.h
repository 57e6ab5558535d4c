// ONNX cells of views that keep every element, and of axes or elements in another order.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values same(Lower& l);
Values to_result_shape(Lower& l);
Values expand(Lower& l);
Values broadcast_tensors(Lower& l);
Values squeeze(Lower& l);
Values squeeze_listed(Lower& l);
Values unsqueeze(Lower& l);
Values view_as_real(Lower& l);
Values view_as_complex(Lower& l);
Values view_dtype(Lower& l);  // bits.cc

Values permute(Lower& l);
Values transpose(Lower& l);
Values swapaxes(Lower& l);
Values matrix_transpose(Lower& l);
Values matrix_adjoint(Lower& l);
Values reverse_axes(Lower& l);
Values movedim(Lower& l);
Values channel_shuffle(Lower& l);
Values flip(Lower& l);
Values fliplr(Lower& l);
Values flipud(Lower& l);
Values roll(Lower& l);
Values rot90(Lower& l);

}  // namespace modelport::ops::onnx
