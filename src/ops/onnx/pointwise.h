// Pointwise functions that ONNX has no operator for, as a few nodes each. Operands of one function
// have the same element type.
#pragma once

#include <span>

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// A number in the type of x.
inline Value like(Lower& l, Value x, double value) { return l.number(value, l.dtype(x)); }
/// Integers, bools among them: they have no NaN, no fraction.
bool is_whole(Dtype dtype);
/// f32 for types that onnxruntime has no arithmetic in; for cells of several nodes, so that they
/// cast once.
Dtype working_dtype(Dtype dtype);
/// f32 for halves: where torch computes in between in f32 whatever the type is, and numbers of f16
/// would become infinite.
Dtype sum_dtype(Dtype dtype);
/// x * x, or for other small whole exponents as many products as it takes.
Value power_of(Lower& l, Value x, std::int64_t exponent);
/// c[0] + c[1] x + c[2] x^2 ...
Value polynomial(Lower& l, Value x, std::span<const double> coefficients);

Value is_nan(Lower& l, Value x);
Value is_infinite(Lower& l, Value x);
Value is_finite(Lower& l, Value x);
Value sign_bit(Lower& l, Value x);  // bool; -0.0 has it
Value truncated(Lower& l, Value x);
Value log1p(Lower& l, Value x);
Value arc_tangent(Lower& l, Value y, Value x);  // atan2

Value floor_quotient(Lower& l, Value a, Value b);
Value truncated_quotient(Lower& l, Value a, Value b);
Value floor_remainder(Lower& l, Value a, Value b);      // the sign of b, as Python has it
Value truncated_remainder(Lower& l, Value a, Value b);  // the sign of a, as C has it

/// All elements: one truth without axes.
Value all_true(Lower& l, Value truths);

}  // namespace modelport::ops::onnx
