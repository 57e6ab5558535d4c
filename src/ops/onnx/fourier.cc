// ONNX's own Fourier transform, and complex numbers taken apart and put together.
#include "ops/onnx/fourier.h"

#include <bit>
#include <numbers>

#include "ops/onnx/complex.h"
#include "ops/onnx/product.h"

namespace modelport::ops::onnx {

namespace {

// Up to this size a product with waves beats a DFT whose size is no power of two.
constexpr std::int64_t kMostByWaves = 1024;

bool is_power_of_two(std::int64_t size) {
  return std::has_single_bit(static_cast<std::uint64_t>(size));
}

}  // namespace

bool Lower::has_transform(const Int& n, Dtype dtype) const {
  const auto size = n.constant();
  return !size || dtype != Dtype::f32 || *size > kMostByWaves || is_power_of_two(*size);
}

Values Lower::transform(const Values& signal, const Int& n, bool inverse) {
  const Value re = signal[0];
  const Dtype own = dtype(re);
  // onnxruntime's DFT is exact enough in f32 for powers of two alone.
  const Dtype wide = n.constant() && is_power_of_two(*n.constant()) ? own : Dtype::f64;
  const std::int64_t rank = this->rank(re);
  Value pairs = signal.size() == 1 ? unsqueeze(re, {rank}) : as_pairs(make_complex(re, signal[1]));
  pairs = cast(pairs, wide);
  const bool alone = rank == 1;  // the operator wants a batch
  if (alone) pairs = unsqueeze(pairs, {0});
  const std::int64_t axis = alone ? 1 : rank - 1;
  Shape made = shape(pairs);
  made.back() = 2;
  Attributes attributes{{"inverse", {Int(inverse ? 1 : 0)}}};
  Values inputs{pairs};
  if (opset() < 20) {
    attributes.push_back({"axis", {Int(axis)}});
  } else {
    inputs.push_back(kNoValue);
    inputs.push_back(number(axis, Dtype::i64));
  }
  Value y = emit("DFT", inputs, attributes, {wide, std::move(made)});
  if (inverse) y = mul(y, cast(size(n), wide));
  if (alone) y = squeeze(y, {0});
  const Value whole = from_pairs(cast(y, own));
  return {real_part(whole), imaginary_part(whole)};
}

Values conj(Lower& l) { return {conjugate(l, l.in("self"))}; }
Values unchanged(Lower& l) { return {l.in("self")}; }

Values real(Lower& l) {
  const Value x = l.in("self");
  return {is_complex(l.dtype(x)) ? l.real_part(x) : x};
}

Values imag(Lower& l) { return {l.imaginary_part(l.in("self"))}; }

Values angle(Lower& l) {
  const Value x = l.in("self");
  const Dtype own = l.result().dtype;
  if (is_complex(l.dtype(x))) return {complex_angle(l, x)};
  // Pi for numbers below zero; NaN stays.
  const Value y = l.cast(x, own);
  const Value zero = l.number(0.0, own);
  const Value below = l.compare("Less", y, zero);
  const Value turned = l.where(below, l.number(std::numbers::pi, own), zero);
  if (!is_floating(l.dtype(x))) return {turned};
  return {l.where(l.emit("IsNaN", {y}, {}, {Dtype::boolean, l.shape(y)}), y, turned)};
}

Values complex(Lower& l) {
  const Shape& shape = l.result().shape;
  return {l.make_complex(l.expand(l.in("real"), shape), l.expand(l.in("imag"), shape))};
}

Values polar(Lower& l) {
  const Value size = l.in("abs");
  const Value angle = l.in("angle");
  return {l.make_complex(l.mul(size, l.unary("Cos", angle)), l.mul(size, l.unary("Sin", angle)))};
}

}  // namespace modelport::ops::onnx
