// Interpolation: Resize where onnxruntime takes the same points as torch, a gather of rows or a
// matrix of weights for each axis where it does not.
#include "ops/onnx/resample.h"

#include <array>
#include <cmath>
#include <numbers>

#include "ops/rules/axes.h"
#include "ops/rules/windows.h"

namespace modelport::ops::onnx {

Value times_along(Lower& l, Value matrix, Value x, std::int64_t axis) {
  const std::int64_t rank = l.rank(x);
  if (axis == rank - 2) return l.matmul(matrix, x);
  if (axis == rank - 1) return l.matmul(x, l.transpose(matrix, {1, 0}));
  return l.swap_axes(l.matmul(matrix, l.swap_axes(x, axis, rank - 2)), axis, rank - 2);
}

namespace {

enum class Filter { nearest, nearest_exact, linear, cubic, lanczos };

struct Axis {
  Int in, out;
  std::optional<double> scale;  // given, not out / in
};

struct Upsample {
  Filter filter = Filter::linear;
  bool smooth = false;  // antialias
  bool align_corners = false;
  std::vector<Axis> axes;
};

Filter filter_of(std::string_view name) {
  if (name.find("nearest_exact") != std::string_view::npos) return Filter::nearest_exact;
  if (name.find("nearest") != std::string_view::npos) return Filter::nearest;
  if (name.find("cubic") != std::string_view::npos) return Filter::cubic;
  return name.find("lanczos") != std::string_view::npos ? Filter::lanczos : Filter::linear;
}

std::optional<double> number_in(Lower& l, const ir::Arg& arg) {
  if (arg.is_none()) return std::nullopt;
  if (const double* number = arg.get<double>()) return *number;
  if (const Int* number = arg.get<Int>(); number != nullptr && number->is_constant())
    return static_cast<double>(*number->constant());
  l.refuse("scales must be known before the program runs; give sizes instead");
}

Upsample read(Lower& l, const Shape& shape) {
  const std::string_view name = l.call().op().name;
  const Schema& schema = schema_of(l.call().op());
  Upsample u{.filter = filter_of(name), .smooth = name.find("_aa") != std::string_view::npos};
  u.align_corners = schema.find("align_corners") != nullptr && l.call().flag("align_corners");
  const std::size_t axes = shape.size() - 2;
  const std::array<std::string_view, 3> names{"scales_d", "scales_h", "scales_w"};
  for (std::size_t i = 0; i < axes; ++i) {
    Axis axis{shape[2 + i], l.result().shape[2 + i], std::nullopt};
    if (schema.find("scale_factors") != nullptr) {
      const auto* list = l.call().arg("scale_factors").get<ir::ArgList>();
      if (list != nullptr) axis.scale = number_in(l, (*list)[i]);
    } else {
      axis.scale = number_in(l, l.call().arg(axes == 1 ? "scales" : names[3 - axes + i]));
    }
    if (axis.scale && (u.align_corners || *axis.scale <= 0)) axis.scale.reset();
    u.axes.push_back(std::move(axis));
  }
  return u;
}

// --- Resize
// ---------------------------------------------------------------------------------------

/// A scale that f32 has exactly, so that sizes and points come out the same.
bool is_exact(double scale) { return scale * 256 == std::floor(scale * 256) && scale < 1 << 12; }

/// What out is of in, where the sizes alone tell.
std::optional<double> ratio_of(const Axis& axis) {
  if (axis.scale) return is_exact(*axis.scale) ? axis.scale : std::nullopt;
  if (axis.in == axis.out) return 1;
  const auto quotient = shape::exact_quotient(axis.out, axis.in);
  if (!quotient || !quotient->is_constant()) return std::nullopt;
  return static_cast<double>(*quotient->constant());
}

/// Torch multiplies by the reciprocal, onnxruntime divides: the same row for each of these?
bool same_rows(double scale, bool centered) {
  constexpr int kTried = 1 << 13;
  const auto reciprocal = static_cast<float>(1 / scale);
  const auto own = static_cast<float>(scale);
  for (int i = 0; i < kTried; ++i) {
    const auto place = static_cast<float>(i);
    const float torch = std::floor((centered ? place + 0.5F : place) * reciprocal);
    // Half way between two rows it takes the second.
    const float theirs = std::floor(centered ? (place + 0.5F) / own - 0.5F + 0.5F : place / own);
    if (torch != theirs) return false;
  }
  return true;
}

Value resized(Lower& l, Value x, const Upsample& u, bool by_scales) {
  const Shape& result = l.result().shape;
  const bool nearest = u.filter == Filter::nearest || u.filter == Filter::nearest_exact;
  Attributes attributes{{"mode",
                         {std::string(nearest                      ? "nearest"
                                      : u.filter == Filter::linear ? "linear"
                                                                   : "cubic")}},
                        {"coordinate_transformation_mode",
                         {std::string(u.align_corners               ? "align_corners"
                                      : u.filter == Filter::nearest ? "asymmetric"
                                                                    : "half_pixel")}}};
  if (nearest)
    attributes.push_back(
        {"nearest_mode",
         {std::string(u.filter == Filter::nearest ? "floor" : "round_prefer_ceil")}});
  if (u.smooth) {
    attributes.push_back({"antialias", {Int(1)}});
    attributes.push_back({"exclude_outside", {Int(1)}});
  }
  if (u.filter == Filter::cubic) attributes.push_back({"cubic_coeff_a", {u.smooth ? -0.5 : -0.75}});
  Values inputs{x, kNoValue};
  if (by_scales) {
    std::vector<double> scales{1, 1};
    for (const Axis& axis : u.axes) scales.push_back(*ratio_of(axis));
    const auto count = static_cast<std::int64_t>(scales.size());
    inputs.push_back(l.constant(Dtype::f32, {count}, scales));
  } else {
    inputs.push_back(kNoValue);
    inputs.push_back(l.sizes(result));
  }
  return l.emit("Resize", inputs, attributes, {l.dtype(x), result});
}

// --- rows of torch's own choice
// -------------------------------------------------------------------

/// How far one step in the result goes in the input, as torch has it in f32.
Value step_of(Lower& l, const Axis& axis, bool align_corners) {
  if (axis.scale)
    return l.number(static_cast<double>(static_cast<float>(1 / *axis.scale)), Dtype::f32);
  const auto real = [&](const Int& size) { return l.cast(l.scalar(size), Dtype::f32); };
  if (!align_corners) return l.div(real(axis.in), real(axis.out));
  // With a single point there are no steps.
  const Value steps = real(shape::max(axis.out - 1, 1));
  const Value first = l.div(real(axis.in - 1), steps);
  if (l.surely_at_least(axis.out, 2)) return first;
  return l.mul(first, real(shape::min(axis.out - 1, 1)));
}

Value nearest_rows(Lower& l, const Axis& axis, bool centered) {
  Value place = l.cast(l.range(axis.out), Dtype::f32);
  if (centered) place = l.add(place, l.number(0.5, Dtype::f32));
  const Value row = l.unary("Floor", l.mul(place, step_of(l, axis, false)));
  return l.binary("Min", l.cast(row, Dtype::i64), l.scalar(axis.in - 1));
}

Value gathered(Lower& l, Value x, const Upsample& u) {
  for (std::size_t i = 0; i < u.axes.size(); ++i) {
    const Axis& axis = u.axes[i];
    if (axis.in == axis.out && (!axis.scale || *axis.scale == 1)) continue;
    x = l.gather(x, nearest_rows(l, axis, u.filter == Filter::nearest_exact),
                 static_cast<std::int64_t>(2 + i));
  }
  return x;
}

// --- matrices of weights
// --------------------------------------------------------------------------

class Weights {
 public:
  Weights(Lower& l, const Axis& axis, bool align_corners)
      : l_(l),
        axis_(axis),
        align_corners_(align_corners),
        step_(step_of(l, axis, align_corners)),
        row_(l.unsqueeze(l.cast(l.range(axis.out), Dtype::f32), {1})),
        place_(l.cast(l.range(axis.in), Dtype::f32)) {}

  Value linear() {
    const Value point = min(max(source(), number(0)), last());
    return l_.unary("Relu", l_.sub(number(1), l_.unary("Abs", l_.sub(point, place_))));
  }

  Value cubic() {
    constexpr double kSlope = -0.75;
    const Value point = source();
    const Value left = l_.unary("Floor", point);
    const Value rest = l_.sub(point, left);
    Value matrix = kNoValue;
    for (int k = -1; k <= 2; ++k) {
      const Value distance = l_.unary("Abs", l_.sub(number(k), rest));
      const Value tap = min(max(l_.add(left, number(k)), number(0)), last());
      const Value here = l_.cast(l_.compare("Equal", tap, place_), Dtype::f32);
      const Value part = l_.mul(here, cubic_piece(distance, kSlope, k == 0 || k == 1));
      matrix = matrix == kNoValue ? part : l_.add(matrix, part);
    }
    return matrix;
  }

  /// The filter stretched over what a step covers, its weights made to add up to 1.
  Value smooth(Filter filter) {
    const double reach = filter == Filter::linear ? 1 : filter == Filter::cubic ? 2 : 3;
    const Value stretch = max(step_, number(1));
    const Value support = l_.mul(stretch, number(reach));
    const Value center = l_.mul(l_.add(row_, number(0.5)), step_);
    const Value middle = l_.add(center, number(0.5));
    const Value start = max(l_.unary("Floor", l_.sub(middle, support)), number(0));
    const Value end = l_.unary("Floor", l_.add(middle, support));
    const Value distance =
        l_.unary("Abs", l_.div(l_.add(l_.sub(place_, center), number(0.5)), stretch));
    const Value inside = l_.emit(
        "And", {l_.compare("GreaterOrEqual", place_, start), l_.compare("Less", place_, end)}, {},
        {Dtype::boolean, {axis_.out, axis_.in}});
    const Value weights = l_.where(inside, piece(filter, distance), number(0));
    return l_.div(weights, l_.reduce("ReduceSum", weights, {1}, true));
  }

 private:
  Value number(double value) { return l_.number(value, Dtype::f32); }
  Value max(Value a, Value b) { return l_.binary("Max", a, b); }
  Value min(Value a, Value b) { return l_.binary("Min", a, b); }
  Value last() { return l_.cast(l_.scalar(axis_.in - 1), Dtype::f32); }

  Value source() {
    if (align_corners_) return l_.mul(row_, step_);
    return l_.sub(l_.mul(l_.add(row_, number(0.5)), step_), number(0.5));
  }

  /// The cubic convolution kernel within 1 of its center, or between 1 and 2.
  Value cubic_piece(Value x, double a, bool inner) {
    const std::array<double, 4> c = inner ? std::array<double, 4>{1, 0, -(a + 3), a + 2}
                                          : std::array<double, 4>{-4 * a, 8 * a, -5 * a, a};
    Value y = number(c[3]);
    for (int i = 2; i >= 0; --i) y = l_.add(l_.mul(y, x), number(c[static_cast<std::size_t>(i)]));
    return y;
  }

  Value piece(Filter filter, Value x) {
    const Value none = number(0);
    if (filter == Filter::linear) return max(l_.sub(number(1), x), none);
    if (filter == Filter::cubic) {
      const Value outer =
          l_.where(l_.compare("Less", x, number(2)), cubic_piece(x, -0.5, false), none);
      return l_.where(l_.compare("Less", x, number(1)), cubic_piece(x, -0.5, true), outer);
    }
    const auto sinc = [&](Value v) {
      const Value angle = l_.mul(v, number(std::numbers::pi));
      return l_.div(l_.unary("Sin", angle), angle);
    };
    constexpr double kTiny = 1e-6;  // sinc is 1 there
    const Value safe = max(x, number(kTiny));
    const Value wave = l_.mul(sinc(safe), sinc(l_.div(safe, number(3))));
    return l_.where(l_.compare("Less", x, number(3)), wave, none);
  }

  Lower& l_;
  const Axis& axis_;
  bool align_corners_;
  Value step_, row_, place_;
};

Value by_matrices(Lower& l, Value x, const Upsample& u) {
  for (std::size_t i = 0; i < u.axes.size(); ++i) {
    Weights weights(l, u.axes[i], u.align_corners);
    const Value matrix = u.smooth                     ? weights.smooth(u.filter)
                         : u.filter == Filter::linear ? weights.linear()
                                                      : weights.cubic();
    x = times_along(l, matrix, x, static_cast<std::int64_t>(2 + i));
  }
  return x;
}

}  // namespace

Values upsample(Lower& l) {
  const bool listed = schema_of(l.call().op()).find("scale_factors") != nullptr;
  const Value given = l.in(listed ? "input" : "self");
  const Dtype own = l.dtype(given);
  const Upsample u = read(l, l.shape(given));
  bool scaled = false;
  bool exact = true;
  bool rows = true;
  for (const Axis& axis : u.axes) {
    const auto ratio = ratio_of(axis);
    scaled = scaled || axis.scale;
    exact = exact && ratio;
    rows = rows && ratio && same_rows(*ratio, u.filter == Filter::nearest_exact);
  }
  if (u.filter == Filter::nearest || u.filter == Filter::nearest_exact) {
    if (!rows || (own != Dtype::f32 && own != Dtype::u8)) return {gathered(l, given, u)};
    return {resized(l, given, u, true)};
  }
  const Value x = l.cast(given, Dtype::f32);
  const bool differs =
      u.smooth && (u.align_corners || l.opset() < 18 || u.filter == Filter::lanczos);
  Value y = differs || (scaled && !exact) ? by_matrices(l, x, u) : resized(l, x, u, scaled);
  if (is_integral(own)) y = l.unary("Round", y);
  return {l.cast(y, own)};
}

}  // namespace modelport::ops::onnx
