// Arithmetic on doubles as Python does it, with errors where Python raises.
#pragma once

#include "shape/real.h"

namespace modelport::shape::detail {

double python_binary(Real::Op op, double a, double b);
double python_unary(Real::Op op, double a);
bool python_compare(Compare op, double a, double b);
/// A double that is a whole number; throws where it is not finite or does not fit.
std::int64_t to_integer(double whole);

}  // namespace modelport::shape::detail
