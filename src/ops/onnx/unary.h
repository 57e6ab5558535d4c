// ONNX cells of pointwise operators with one operand.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values abs(Lower& l);
Values bitwise_not(Lower& l);
Values rounded(Lower& l);  // ceil, floor, round, trunc: integers are whole already
Values round_decimals(Lower& l);
Values deg2rad(Lower& l);
Values rad2deg(Lower& l);
Values exp(Lower& l);
Values exp2(Lower& l);
Values expm1(Lower& l);
Values frac(Lower& l);
Values frexp(Lower& l);
Values isfinite(Lower& l);
Values isinf(Lower& l);
Values isnan(Lower& l);
Values isneginf(Lower& l);
Values isposinf(Lower& l);
Values log(Lower& l);
Values log10(Lower& l);
Values log1p_cell(Lower& l);
Values log2(Lower& l);
Values logical_not(Lower& l);
Values logit(Lower& l);
Values nan_to_num(Lower& l);
Values neg(Lower& l);
Values reciprocal(Lower& l);
Values rsqrt(Lower& l);
Values sign(Lower& l);
Values signbit(Lower& l);
Values sinc(Lower& l);
Values sqrt(Lower& l);
Values square(Lower& l);
Values entropy_term(Lower& l);

}  // namespace modelport::ops::onnx
