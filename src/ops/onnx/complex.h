// Complex arithmetic on pairs of reals.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Value complex_product(Lower& l, Value a, Value b);
Value complex_quotient(Lower& l, Value a, Value b);
/// A complex number and a real one of its parts' type.
Value complex_scaled(Lower& l, std::string_view op, Value z, Value real);
/// Add, Sub, Neg, Cast ...: the same on both parts.
Value on_pairs(Lower& l, std::string_view op, Value a, Value b);
Value complex_magnitude(Lower& l, Value z);  // real
Value complex_angle(Lower& l, Value z);      // real
Value complex_exp(Lower& l, Value z);
Value complex_log(Lower& l, Value z);
Value complex_sqrt(Lower& l, Value z);
Value complex_sign(Lower& l, Value z);

}  // namespace modelport::ops::onnx
