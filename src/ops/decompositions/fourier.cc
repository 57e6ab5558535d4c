// Fourier transforms: by the target's own operator, or by products with waves.
#include <cmath>
#include <numbers>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/terms.h"
#include "ops/rules/axes.h"

namespace modelport::ops::parts {
namespace {

// Waves of up to this many numbers are constants; more are computed when the program runs.
constexpr std::int64_t kMostStored = 1 << 12;

Waves stored_waves(Emitter& e, std::int64_t n, std::int64_t rows, std::int64_t columns,
                   Dtype dtype) {
  std::vector<double> cosines, sines;
  for (std::int64_t j = 0; j < rows; ++j) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  }
  return {e.constant(dtype, {rows, columns}, cosines), e.constant(dtype, {rows, columns}, sines)};
}

}  // namespace

Waves waves(Emitter& e, const Int& n, const Int& rows, const Int& columns, Dtype dtype) {
  const auto count = (rows * columns).constant();
  if (n.constant() && count && *count <= kMostStored)
    return stored_waves(e, *n.constant(), *rows.constant(), *columns.constant(), dtype);
  Terms t(e);
  // Whole turns are taken off while the numbers are integers: the angle stays exact.
  const Value product = mul(e, with_axis_at(e, counted(e, rows), 1), counted(e, columns));
  const Value turns =
      cast(e, e.call("aten.remainder.Tensor", {product, t.size(n, Dtype::i64)}), dtype);
  const Value angle = t.mul(div(e, turns, t.size(n, dtype)), 2 * std::numbers::pi);
  return {t.of("cos", angle), t.of("sin", angle)};
}

Value fitted(Emitter& e, Value x, std::int64_t axis, const Int& size) {
  const Int own = e.shape(x)[at(axis)];
  if (own == size) return x;
  if (e.surely_at_least(own - size, 0)) return sliced(e, x, axis, 0, size);
  const Int kept = e.surely_at_least(size - own, 0) ? own : shape::min(own, size);
  Shape pads(2 * at(e.rank(x) - axis), 0);
  pads.back() = size - kept;
  return padded(e, sliced(e, x, axis, 0, kept), pads);
}

Value half_weights(Emitter& e, const Int& n, Dtype dtype) {
  // All but the first count twice, and the last of an even size.
  const Int half = shape::floor_div(n, 2) + 1;
  if (const auto size = n.constant()) {
    std::vector<double> twice(at(*half.constant()), 2);
    twice[0] = 1;
    if (*size % 2 == 0) twice.back() = 1;
    return e.constant(dtype, {*half.constant()}, twice);
  }
  Terms t(e);
  const Value place = counted(e, half);
  const Value ends_pair = e.call("aten.eq.Tensor", {t.add(place, place), t.size(n, Dtype::i64)});
  const Value once = t.either(t.is("eq", place, 0), ends_pair);
  return t.sub(filled(e, {half}, 2, dtype), cast(e, once, dtype));
}

namespace {

/// Real parts, and imaginary ones where there are any.
struct Signal {
  Value re = kNoValue, im = kNoValue;
  bool is_real() const { return im == kNoValue; }
};

enum class Scale { none, root, whole };

struct Plan {
  std::vector<std::int64_t> axes;
  std::vector<Int> sizes;  // of the signal along these axes
  bool inverse = false;
  bool half_in = false, half_out = false;  // along the last of the axes
  bool conjugate_in = false, conjugate_out = false;
  Scale scale = Scale::none;
};

class Transform {
 public:
  Transform(Emitter& e, Plan plan) : e_(e), t_(e), plan_(std::move(plan)) {}

  Value run(Signal x) {
    if (plan_.conjugate_in) x = conjugated(x);
    const std::size_t count = plan_.axes.size();
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_half = plan_.half_in && i + 1 == count;
      const Int size = is_half ? half(plan_.sizes[i]) : plan_.sizes[i];
      x = each(x, [&](Value part) { return fitted(e_, part, plan_.axes[i], size); });
    }
    if (plan_.half_out)
      x = along(x, count - 1, [&](Signal s, const Int& n) { return forward(s, n, half(n)); });
    const std::size_t whole = count - (plan_.half_in || plan_.half_out ? 1 : 0);
    for (std::size_t i = 0; i < whole; ++i)
      x = along(x, i, [&](Signal s, const Int& n) { return forward(s, n, n); });
    if (plan_.half_in)
      x = along(x, count - 1, [&](Signal s, const Int& n) { return to_reals(s, n); });
    if (plan_.conjugate_out) x = conjugated(x);
    x = scaled(x);
    return is_complex(e_.result().dtype) ? e_.call("aten.complex", {x.re, imaginary(x)}) : x.re;
  }

 private:
  static Int half(const Int& n) { return shape::floor_div(n, 2) + 1; }
  Value negated(Value x) { return e_.call("aten.neg", {x}); }
  Value imaginary(const Signal& x) {
    return x.is_real() ? filled(e_, e_.shape(x.re), 0, e_.dtype(x.re)) : x.im;
  }
  Signal conjugated(const Signal& x) { return x.is_real() ? x : Signal{x.re, negated(x.im)}; }

  template <class Change>
  Signal each(const Signal& x, const Change& change) {
    return {change(x.re), x.is_real() ? kNoValue : change(x.im)};
  }

  /// What is done along the last axis, along axis number `i` of the plan.
  template <class Do>
  Signal along(const Signal& x, std::size_t i, const Do& transform) {
    const std::int64_t axis = plan_.axes[i], last = e_.rank(x.re) - 1;
    const auto swapped = [&](Value part) {
      return axis == last ? part : e_.call("aten.transpose.int", {part, axis, last});
    };
    return each(transform(each(x, swapped), plan_.sizes[i]), swapped);
  }

  /// The first `columns` entries of the spectrum.
  Signal forward(const Signal& x, const Int& n, const Int& columns) {
    if (e_.has_transform(n, e_.dtype(x.re))) {
      const Values made =
          e_.transform(x.is_real() ? Values{x.re} : Values{x.re, x.im}, n, plan_.inverse);
      return each({made[0], made[1]},
                  [&](Value part) { return sliced(e_, part, e_.rank(part) - 1, 0, columns); });
    }
    const Waves w = waves(e_, n, n, columns, e_.dtype(x.re));
    const Value with_sines = product(e_, x.re, w.sines);
    if (x.is_real())
      return {product(e_, x.re, w.cosines), plan_.inverse ? with_sines : negated(with_sines)};
    const Value re = product(e_, x.re, w.cosines), im = product(e_, x.im, w.cosines);
    const Value crossed = product(e_, x.im, w.sines);
    if (plan_.inverse) return {sub(e_, re, crossed), add(e_, im, with_sines)};
    return {add(e_, re, crossed), sub(e_, im, with_sines)};
  }

  /// From half of a spectrum to real numbers.
  Signal to_reals(const Signal& x, const Int& n) {
    const Dtype dtype = e_.dtype(x.re);
    const std::int64_t last = e_.rank(x.re) - 1;
    if (e_.has_transform(n, dtype)) {
      const auto whole = [&](Value part, bool negative) {
        const Value rest =
            e_.call("aten.flip", {sliced(e_, part, last, 1, n - half(n) + 1), {last}});
        return e_.call("aten.cat", {Values{part, negative ? negated(rest) : rest}, last});
      };
      return {e_.transform({whole(x.re, false), whole(imaginary(x), true)}, n, true)[0]};
    }
    const Value weights = half_weights(e_, n, dtype);
    const Waves w = waves(e_, n, half(n), n, dtype);
    const Value re = product(e_, mul(e_, x.re, weights), w.cosines);
    return {sub(e_, re, product(e_, mul(e_, imaginary(x), weights), w.sines))};
  }

  Signal scaled(const Signal& x) {
    if (plan_.scale == Scale::none) return x;
    const bool root = plan_.scale == Scale::root;
    const Int count = numel(plan_.sizes);
    if (const auto n = count.constant()) {
      const auto size = static_cast<double>(*n);
      return each(x, [&](Value part) {
        return parts::scaled(e_, part, 1 / (root ? std::sqrt(size) : size));
      });
    }
    const Value size = t_.size(count, e_.dtype(x.re));
    const Value by = root ? t_.of("sqrt", size) : size;
    return each(x, [&](Value part) { return div(e_, part, by); });
  }

  Emitter& e_;
  Terms t_;
  Plan plan_;
};

/// What the name of a transform says: fft, ifft, rfft, irfft, hfft, ihfft, with 2 or n after it.
void read_name(Emitter& e, Plan& plan) {
  std::string_view name = e.call().op().name.substr(std::string_view("aten.fft_").size());
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
  const std::string_view norm = e.has("norm") ? e.call().string("norm") : "backward";
  plan.scale = norm == "ortho"                ? Scale::root
               : (norm == "backward") == back ? Scale::whole
                                              : Scale::none;
}

Signal signal(Emitter& e) {
  const Value x = e.tensor("self");
  if (is_complex(e.dtype(x))) return {e.call("aten.real", {x}), e.call("aten.imag", {x})};
  return {cast(e, x, to_real(to_complex(e.dtype(x))))};
}

Int signal_size(const Plan& plan, bool last, const Int& size, const std::optional<Int>& given) {
  if (given && !(*given == Int(-1))) return *given;
  return plan.half_in && last ? 2 * (size - 1) : size;
}

}  // namespace

Value fft_of_one(Emitter& e) {
  Plan plan;
  read_name(e, plan);
  const Shape& shape = e.call().shape("self");
  plan.axes = {e.axis("dim", static_cast<std::int64_t>(shape.size()))};
  plan.sizes = {signal_size(plan, true, shape[at(plan.axes[0])], e.call().optional_integer("n"))};
  return Transform(e, plan).run(signal(e));
}

Value fft_of_many(Emitter& e) {
  Plan plan;
  read_name(e, plan);
  const Shape& shape = e.call().shape("self");
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::optional<std::vector<Int>> sizes = e.call().optional_ints("s");
  if (e.has("dim")) {
    plan.axes = axis_list(e.call(), "dim", rank);
  } else {
    const auto count = sizes ? static_cast<std::int64_t>(sizes->size()) : rank;
    for (std::int64_t axis = rank - count; axis < rank; ++axis) plan.axes.push_back(axis);
  }
  for (std::size_t i = 0; i < plan.axes.size(); ++i) {
    const std::optional<Int> given = sizes ? std::optional<Int>(sizes->at(i)) : std::nullopt;
    plan.sizes.push_back(
        signal_size(plan, i + 1 == plan.axes.size(), shape[at(plan.axes[i])], given));
  }
  return Transform(e, plan).run(signal(e));
}

Value fft_plain(Emitter& e) {
  const std::string_view name = e.call().op().name;
  Plan plan;
  const Shape& shape = e.call().shape("self");
  plan.axes = axis_list(e.call(), "dim", static_cast<std::int64_t>(shape.size()));
  for (const std::int64_t axis : plan.axes) plan.sizes.push_back(shape[at(axis)]);
  plan.scale = static_cast<Scale>(e.call().number("normalization"));
  if (name == "aten._fft_c2c") plan.inverse = !e.call().flag("forward");
  if (name == "aten._fft_r2c") plan.half_out = e.call().flag("onesided");
  if (name == "aten._fft_c2r") {
    plan.half_in = plan.inverse = true;
    plan.sizes.back() = e.call().integer("last_dim_size");
  }
  return Transform(e, plan).run(signal(e));
}

}  // namespace modelport::ops::parts
