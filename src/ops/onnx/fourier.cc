// Fourier transforms on pairs of reals: DFT, or products with waves where those are more exact.
#include "ops/onnx/fourier.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "ops/onnx/complex.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/product.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

Waves waves(Lower& l, const Int& n, const Int& rows, const Int& columns, Dtype dtype) {
  // Whole turns are taken off while the numbers are integers: the angle stays exact.
  const Value product = l.mul(l.unsqueeze(l.range(rows), {1}), l.range(columns));
  const Value turns = l.cast(l.binary("Mod", product, l.size(n)), dtype);
  const Value angle =
      l.mul(l.div(turns, l.cast(l.size(n), dtype)), l.number(2 * std::numbers::pi, dtype));
  return {l.unary("Cos", angle), l.unary("Sin", angle)};
}

Value fitted(Lower& l, Value x, std::int64_t axis, const Int& size) {
  const Int own = l.shape(x)[at(axis)];
  if (own == size) return x;
  if (l.surely_at_least(own - size, 0)) return l.slice(x, axis, 0, size);
  if (is_complex(l.dtype(x))) return l.from_pairs(fitted(l, l.as_pairs(x), axis, size));
  Shape starts(l.shape(x).size(), 0), ends(l.shape(x).size(), 0);
  ends[at(axis)] = size - own;  // less than zero: cut
  return bordered(l, x, starts, ends, l.number(0.0, l.dtype(x)));
}

namespace {

// Up to this size a product with waves beats a DFT whose size is no power of two.
constexpr std::int64_t kMostByWaves = 1024;

bool by_waves(const Int& n, Dtype dtype) {
  const auto size = n.constant();
  if (!size || dtype != Dtype::f32 || *size > kMostByWaves) return false;
  return !std::has_single_bit(static_cast<std::uint64_t>(*size));
}

/// onnxruntime's DFT is exact enough in f32 for powers of two alone.
Dtype dft_dtype(const Int& n, Dtype dtype) {
  const auto size = n.constant();
  const bool power = size && std::has_single_bit(static_cast<std::uint64_t>(*size));
  return power ? dtype : Dtype::f64;
}

/// Along one axis of reals or complex numbers, unscaled in both directions.
class Dft {
 public:
  Dft(Lower& l, const Int& n, bool inverse) : l_(l), n_(n), inverse_(inverse) {}

  Value run(Value x, std::int64_t axis) {
    const Dtype dtype = to_real(l_.dtype(x));
    if (!by_waves(n_, dtype)) return by_operator(x, axis);
    const std::int64_t last = l_.rank(x) - 1;
    const Waves w = waves(l_, n_, n_, n_, dtype);
    const Value y = by_products(move_axis(l_, x, axis, last), w);
    return move_axis(l_, y, last, axis);
  }

  /// From half of a spectrum to real numbers.
  Value to_reals(Value x, std::int64_t axis) {
    const Dtype dtype = to_real(l_.dtype(x));
    const Int half = shape::floor_div(n_, 2) + 1;
    x = fitted(l_, x, axis, half);
    if (!by_waves(n_, dtype)) {
      const Value rest = reversed(l_, l_.slice(x, axis, 1, n_ - half + 1), {axis});
      return l_.real_part(by_operator(l_.concat({x, conjugate(l_, rest)}, axis), axis));
    }
    const std::int64_t last = l_.rank(x) - 1;
    const Value y = move_axis(l_, x, axis, last);
    // All but the first count twice, and the last of an even size.
    const std::int64_t count = *half.constant();
    std::vector<double> twice(at(count), 2);
    twice[0] = 1;
    if (*n_.constant() % 2 == 0) twice.back() = 1;
    const Value weights = l_.constant(dtype, {count}, twice);
    const Waves w = waves(l_, n_, half, n_, dtype);
    const Value sum = l_.sub(l_.matmul(l_.mul(l_.real_part(y), weights), w.cosines),
                             l_.matmul(l_.mul(l_.imaginary_part(y), weights), w.sines));
    return move_axis(l_, sum, last, axis);
  }

 private:
  Value by_products(Value x, const Waves& w) {
    const auto minus_if = [&](bool negative, Value v) { return negative ? l_.unary("Neg", v) : v; };
    if (!is_complex(l_.dtype(x)))
      return l_.make_complex(l_.matmul(x, w.cosines), minus_if(!inverse_, l_.matmul(x, w.sines)));
    const Value re = l_.real_part(x), im = l_.imaginary_part(x);
    const Value sines = minus_if(inverse_, w.sines);
    return l_.make_complex(l_.add(l_.matmul(re, w.cosines), l_.matmul(im, sines)),
                           l_.sub(l_.matmul(im, w.cosines), l_.matmul(re, sines)));
  }

  Value by_operator(Value x, std::int64_t axis) {
    const bool complex = is_complex(l_.dtype(x));
    const Dtype own = to_real(l_.dtype(x));
    const Dtype wide = dft_dtype(n_, own);
    Value pairs = l_.cast(complex ? l_.as_pairs(x) : l_.unsqueeze(x, {l_.rank(x)}), wide);
    const bool alone = l_.rank(x) == 1;  // the operator wants a batch
    if (alone) pairs = l_.unsqueeze(pairs, {0});
    const std::int64_t along = alone ? axis + 1 : axis;
    Shape shape = l_.shape(pairs);
    shape.back() = 2;
    Attributes attributes{{"inverse", {Int(inverse_ ? 1 : 0)}}};
    Values inputs{pairs};
    if (l_.opset() < 20) {
      attributes.push_back({"axis", {Int(along)}});
    } else {
      inputs.push_back(kNoValue);
      inputs.push_back(l_.number(along, Dtype::i64));
    }
    Value y = l_.emit("DFT", inputs, attributes, {wide, std::move(shape)});
    if (inverse_) y = l_.mul(y, l_.cast(l_.size(n_), wide));
    if (alone) y = l_.squeeze(y, {0});
    return l_.from_pairs(l_.cast(y, own));
  }

  Lower& l_;
  Int n_;
  bool inverse_;
};

enum class Scale { none, root, whole };

Value scaled(Lower& l, Value x, const Int& count, Scale scale) {
  if (scale == Scale::none) return x;
  const Dtype dtype = to_real(l.dtype(x));
  Value factor;
  if (const auto n = count.constant()) {
    if (*n == 1) return x;
    const auto size = static_cast<double>(*n);
    factor = l.number(1 / (scale == Scale::root ? std::sqrt(size) : size), dtype);
  } else {
    factor = l.cast(l.scalar(count), dtype);
    if (scale == Scale::root) factor = l.unary("Sqrt", factor);
    factor = l.unary("Reciprocal", factor);
  }
  return is_complex(l.dtype(x)) ? complex_scaled(l, "Mul", x, factor) : l.mul(x, factor);
}

struct Plan {
  std::vector<std::int64_t> axes;
  std::vector<Int> sizes;  // of the signal along these axes
  bool inverse = false;
  bool half_in = false, half_out = false;  // along the last of the axes
  bool conjugate_in = false, conjugate_out = false;
  Scale scale = Scale::none;
};

Value half_of(Lower& l, Value x, std::int64_t axis, const Int& n) {
  return l.slice(x, axis, 0, shape::floor_div(n, 2) + 1);
}

Value transformed(Lower& l, Value x, const Plan& plan) {
  if (plan.conjugate_in) x = conjugate(l, x);
  const std::size_t count = plan.axes.size();
  const bool halved = plan.half_in || plan.half_out;
  for (std::size_t i = 0; i < count; ++i) {
    if (!(plan.half_in && i + 1 == count)) x = fitted(l, x, plan.axes[i], plan.sizes[i]);
  }
  const auto plain = [&](std::size_t i) {
    x = Dft(l, plan.sizes[i], plan.inverse).run(x, plan.axes[i]);
  };
  if (plan.half_out) {
    plain(count - 1);
    x = half_of(l, x, plan.axes.back(), plan.sizes.back());
  }
  for (std::size_t i = 0; i + (halved ? 1 : 0) < count; ++i) plain(i);
  if (plan.half_in) x = Dft(l, plan.sizes.back(), true).to_reals(x, plan.axes.back());
  if (plan.conjugate_out) x = conjugate(l, x);
  return scaled(l, x, numel(plan.sizes), plan.scale);
}

/// What the name of a transform says: fft, ifft, rfft, irfft, hfft, ihfft, with 2 or n after it.
void read_name(Lower& l, Plan& plan) {
  std::string_view name = l.call().op().name.substr(std::string_view("aten.fft_").size());
  const bool back = name.starts_with("i");
  if (back) name.remove_prefix(1);
  const bool hermitian = name.starts_with("h");
  const bool half = hermitian || name.starts_with("r");
  plan.half_in = half && back != hermitian;
  plan.half_out = half && back == hermitian;
  // A hermitian transform is the other one with the conjugate spectrum, scaled the other way.
  plan.conjugate_in = hermitian && !back;
  plan.conjugate_out = hermitian && back;
  plan.inverse = plan.half_in || (back && !hermitian);
  const std::string_view norm = l.has("norm") ? l.call().string("norm") : "backward";
  plan.scale = norm == "ortho"                ? Scale::root
               : (norm == "backward") == back ? Scale::whole
                                              : Scale::none;
}

Value signal(Lower& l, const Plan& plan) {
  const Dtype dtype = to_complex(l.call().dtype_of("self"));
  const Value x = l.in("self");
  if (plan.half_in) return l.cast(x, dtype);
  return is_complex(l.dtype(x)) ? x : l.cast(x, to_real(dtype));
}

Int signal_size(const Plan& plan, bool last, const Int& size, const std::optional<Int>& given) {
  if (given && !(*given == Int(-1))) return *given;
  return plan.half_in && last ? 2 * (size - 1) : size;
}

}  // namespace

Values fft_of_one(Lower& l) {
  Plan plan;
  read_name(l, plan);
  const Shape& shape = l.call().shape("self");
  plan.axes = {l.axis("dim", static_cast<std::int64_t>(shape.size()))};
  plan.sizes = {signal_size(plan, true, shape[at(plan.axes[0])], l.call().optional_integer("n"))};
  return {transformed(l, signal(l, plan), plan)};
}

Values fft_of_many(Lower& l) {
  Plan plan;
  read_name(l, plan);
  const Shape& shape = l.call().shape("self");
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::optional<std::vector<Int>> sizes = l.call().optional_ints("s");
  if (l.has("dim")) {
    plan.axes = axis_list(l.call(), "dim", rank);
  } else {
    const auto count = sizes ? static_cast<std::int64_t>(sizes->size()) : rank;
    for (std::int64_t axis = rank - count; axis < rank; ++axis) plan.axes.push_back(axis);
  }
  for (std::size_t i = 0; i < plan.axes.size(); ++i) {
    const std::optional<Int> given = sizes ? std::optional<Int>(sizes->at(i)) : std::nullopt;
    plan.sizes.push_back(
        signal_size(plan, i + 1 == plan.axes.size(), shape[at(plan.axes[i])], given));
  }
  return {transformed(l, signal(l, plan), plan)};
}

Values fft_plain(Lower& l) {
  const std::string_view name = l.call().op().name;
  Plan plan;
  const Shape& shape = l.call().shape("self");
  plan.axes = axis_list(l.call(), "dim", static_cast<std::int64_t>(shape.size()));
  for (const std::int64_t axis : plan.axes) plan.sizes.push_back(shape[at(axis)]);
  plan.scale = static_cast<Scale>(l.call().number("normalization"));
  if (name == "aten._fft_c2c") plan.inverse = !l.call().flag("forward");
  if (name == "aten._fft_r2c") plan.half_out = l.call().flag("onesided");
  if (name == "aten._fft_c2r") {
    plan.half_in = plan.inverse = true;
    plan.sizes.back() = l.call().integer("last_dim_size");
  }
  return {transformed(l, l.in("self"), plan)};
}

Values fftshift(Lower& l) {
  const bool back = l.call().op().name == "aten.fft_ifftshift";
  Value x = l.in("self");
  std::vector<std::int64_t> axes = axis_list(l.call(), "dim", l.rank(x));
  if (!l.has("dim")) {
    for (std::int64_t i = 0; i < l.rank(x); ++i) axes.push_back(i);
  }
  for (const std::int64_t axis : axes) {
    const Int size = l.shape(x)[at(axis)];
    const Int turn = shape::floor_div(back ? size : size + 1, 2);  // the new first element
    x = l.concat({l.slice(x, axis, turn, size), l.slice(x, axis, 0, turn)}, axis);
  }
  return {x};
}

// --- complex numbers
// ------------------------------------------------------------------------------

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
