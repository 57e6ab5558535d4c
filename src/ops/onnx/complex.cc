// Complex numbers as pairs of reals: products, quotients, exponentials.
#include "ops/onnx/complex.h"

#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {

Value on_pairs(Lower& l, std::string_view op, Value a, Value b) {
  return l.from_pairs(l.binary(op, l.as_pairs(a), l.as_pairs(b)));
}

Value complex_scaled(Lower& l, std::string_view op, Value z, Value real) {
  return l.from_pairs(l.binary(op, l.as_pairs(z), l.unsqueeze(real, {l.rank(real)})));
}

Value complex_product(Lower& l, Value a, Value b) {
  const Value ar = l.real_part(a), ai = l.imaginary_part(a);
  const Value br = l.real_part(b), bi = l.imaginary_part(b);
  return l.make_complex(l.sub(l.mul(ar, br), l.mul(ai, bi)), l.add(l.mul(ar, bi), l.mul(ai, br)));
}

Value complex_quotient(Lower& l, Value a, Value b) {
  const Value ar = l.real_part(a), ai = l.imaginary_part(a);
  const Value br = l.real_part(b), bi = l.imaginary_part(b);
  const Value norm = l.reduce("ReduceSumSquare", l.as_pairs(b), {l.rank(b)}, false);
  return l.make_complex(l.div(l.add(l.mul(ar, br), l.mul(ai, bi)), norm),
                        l.div(l.sub(l.mul(ai, br), l.mul(ar, bi)), norm));
}

Value complex_magnitude(Lower& l, Value z) {
  return l.reduce("ReduceL2", l.as_pairs(z), {l.rank(z)}, false);
}

Value complex_angle(Lower& l, Value z) {
  return arc_tangent(l, l.imaginary_part(z), l.real_part(z));
}

Value complex_exp(Lower& l, Value z) {
  const Value size = l.unary("Exp", l.real_part(z));
  const Value angle = l.imaginary_part(z);
  return l.make_complex(l.mul(size, l.unary("Cos", angle)), l.mul(size, l.unary("Sin", angle)));
}

Value complex_log(Lower& l, Value z) {
  return l.make_complex(l.unary("Log", complex_magnitude(l, z)), complex_angle(l, z));
}

Value complex_sqrt(Lower& l, Value z) {
  const Value real = l.real_part(z), imaginary = l.imaginary_part(z);
  const Value size = complex_magnitude(l, z);
  const Value half = like(l, real, 0.5);
  const Value first = l.unary("Sqrt", l.mul(l.add(size, real), half));
  const Value second = l.unary("Sqrt", l.mul(l.sub(size, real), half));
  const Value below = l.compare("Less", imaginary, like(l, real, 0));
  return l.make_complex(first, l.where(below, l.unary("Neg", second), second));
}

Value complex_sign(Lower& l, Value z) {
  const Value size = complex_magnitude(l, z);
  const Value zero = l.compare("Equal", size, like(l, size, 0));
  return complex_scaled(l, "Div", z, l.where(zero, like(l, size, 1), size));
}

}  // namespace modelport::ops::onnx
