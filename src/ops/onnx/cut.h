// ONNX cells of parts of a tensor, and of copies with such a part replaced.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values slice(Lower& l);
Values narrow(Lower& l);
Values narrow_at_tensor(Lower& l);
Values select(Lower& l);
Values split(Lower& l);
Values split_at(Lower& l);
Values unbind(Lower& l);
Values unfold(Lower& l);
Values diagonal(Lower& l);
Values as_strided(Lower& l);

Values slice_scatter(Lower& l);
Values select_scatter(Lower& l);
Values diagonal_scatter(Lower& l);
Values as_strided_scatter(Lower& l);

}  // namespace modelport::ops::onnx
