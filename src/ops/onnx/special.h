// ONNX cells of special functions, from polynomials and series.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values digamma(Lower& l);
Values lgamma(Lower& l);
Values mvlgamma(Lower& l);
Values erfc(Lower& l);
Values erfcx(Lower& l);
Values erfinv(Lower& l);
Values ndtri(Lower& l);
Values log_ndtr(Lower& l);
Values bessel_i0(Lower& l);
Values bessel_i0e(Lower& l);
Values bessel_i1(Lower& l);
Values bessel_i1e(Lower& l);

/// The modified Bessel function of the first kind and order 0.
Value bessel_i0_of(Lower& l, Value x);
/// log |Gamma(x)|
Value log_gamma(Lower& l, Value x);

}  // namespace modelport::ops::onnx
