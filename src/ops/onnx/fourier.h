// ONNX cells of complex numbers taken apart and put together.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values conj(Lower& l);
Values unchanged(Lower& l);
Values real(Lower& l);
Values imag(Lower& l);
Values angle(Lower& l);
Values complex(Lower& l);
Values polar(Lower& l);

}  // namespace modelport::ops::onnx
