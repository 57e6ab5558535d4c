// ONNX cells of pointwise operators with two and three operands.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values add(Lower& l);
Values sub(Lower& l);
Values rsub(Lower& l);
Values mul(Lower& l);
Values div(Lower& l);
Values div_mode(Lower& l);
Values floor_divide(Lower& l);
Values fmod(Lower& l);
Values remainder(Lower& l);
Values maximum(Lower& l);
Values minimum(Lower& l);
Values fmax(Lower& l);
Values fmin(Lower& l);
Values pow(Lower& l);

Values atan2(Lower& l);
Values copysign(Lower& l);
Values heaviside(Lower& l);
Values hypot(Lower& l);
Values ldexp(Lower& l);
Values logaddexp(Lower& l);
Values logaddexp2(Lower& l);
Values xlogy(Lower& l);
Values xlog1py(Lower& l);

Values addcdiv(Lower& l);
Values addcmul(Lower& l);
Values clamp(Lower& l);
Values lerp(Lower& l);
Values where(Lower& l);

}  // namespace modelport::ops::onnx
