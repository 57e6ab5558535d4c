// Sampling at the points of a grid, and the grids of affine maps.
#include <array>

#include "ops/onnx/pieces.h"
#include "ops/onnx/resample.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

/// Points from -1 to 1: at the corners, or in the middles of as many equal pieces.
Value points(Lower& l, const Int& count, bool align_corners, Dtype dtype) {
  const Value place = l.range(count);
  const Value twice = l.sub(l.mul(place, l.ints({2})), l.size(count - 1));
  const Int parts = align_corners ? shape::max(count - 1, 1) : count;
  return l.div(l.cast(twice, dtype), l.cast(l.size(parts), dtype));
}

}  // namespace

Values affine_grid(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = own == Dtype::f64 ? own : Dtype::f32;
  const Shape& shape = l.result().shape;  // [n, (depth,) height, width, axes]
  const auto axes = static_cast<std::int64_t>(shape.size()) - 2;
  const Shape inner(shape.begin() + 1, shape.end() - 1);
  // Each axis of the grid, then a 1 for the shift: x first.
  Values columns;
  const Shape column = joined(inner, {1});
  for (std::int64_t i = axes - 1; i >= 0; --i) {
    const Value line = points(l, inner[at(i)], l.call().flag("align_corners"), wide);
    std::vector<std::int64_t> after;
    for (std::int64_t k = 1; k <= axes - i; ++k) after.push_back(k);
    columns.push_back(l.expand(l.unsqueeze(line, after), column));
  }
  columns.push_back(l.filled(l.number(1.0, wide), column));
  const Value grid = l.reshape(l.concat(columns, axes), {numel(inner), axes + 1});
  const Value map = l.swap_axes(l.in("theta", wide), 1, 2);
  return {l.cast(l.reshape(l.matmul(grid, map), shape), own)};
}

namespace {

enum class Border { zeros, border, reflection };

/// Three axes before opset 20, where GridSample has two alone.
class Sampler {
 public:
  Sampler(Lower& l, Value x, Value grid, Border border, bool align_corners)
      : l_(l), x_(x), grid_(grid), border_(border), align_corners_(align_corners) {}

  Value nearest() {
    std::array<Value, 3> places{};
    for (std::int64_t i = 0; i < 3; ++i) places[at(i)] = l_.unary("Round", coordinate(i));
    return pick(places);
  }

  Value linear() {
    std::array<std::array<Value, 2>, 3> places{}, weights{};
    for (std::int64_t i = 0; i < 3; ++i) {
      const Value point = coordinate(i);
      const Value left = l_.unary("Floor", point);
      const Value rest = l_.sub(point, left);
      places[at(i)] = {left, l_.add(left, number(1))};
      weights[at(i)] = {l_.sub(number(1), rest), rest};
    }
    Value sum = kNoValue;
    for (std::size_t corner = 0; corner < 8; ++corner) {
      const std::array<std::size_t, 3> side{corner & 1, corner >> 1 & 1, corner >> 2};
      const Value weight =
          l_.mul(l_.mul(weights[0][side[0]], weights[1][side[1]]), weights[2][side[2]]);
      const Value picked = pick({places[0][side[0]], places[1][side[1]], places[2][side[2]]});
      const Value part = l_.mul(picked, l_.unsqueeze(weight, {1}));
      sum = sum == kNoValue ? part : l_.add(sum, part);
    }
    return sum;
  }

 private:
  Value number(double value) { return l_.number(value, l_.dtype(x_)); }
  const Int& size(std::int64_t i) { return l_.shape(x_)[at(2 + i)]; }
  Value real(const Int& x) { return l_.cast(l_.scalar(x), l_.dtype(x_)); }
  Value clipped(Value x, std::int64_t i) {
    return l_.binary("Min", l_.binary("Max", x, number(0)), real(size(i) - 1));
  }

  /// Axis i of the input; the grid has the last axis first.
  Value coordinate(std::int64_t i) {
    const Value raw = l_.gather(grid_, l_.number(2 - i, Dtype::i64), 4);
    const Value half = number(0.5);
    const Value up = l_.add(raw, number(1));
    const Value x = align_corners_ ? l_.mul(l_.mul(up, half), real(size(i) - 1))
                                   : l_.mul(l_.sub(l_.mul(up, real(size(i))), number(1)), half);
    if (border_ == Border::zeros) return x;
    return clipped(border_ == Border::reflection ? reflected(x, i) : x, i);
  }

  Value reflected(Value x, std::int64_t i) {
    const Value low = number(align_corners_ ? 0 : -0.5);
    const Value span = real(align_corners_ ? size(i) - 1 : size(i));
    const Value safe = align_corners_ ? l_.binary("Max", span, number(1)) : span;
    const Value away = l_.unary("Abs", l_.sub(x, low));
    const Value turns = l_.unary("Floor", l_.div(away, safe));
    const Value extra = l_.sub(away, l_.mul(turns, safe));
    const Value halves = l_.mul(turns, number(0.5));
    const Value even = l_.compare("Equal", halves, l_.unary("Floor", halves));
    return l_.add(l_.where(even, extra, l_.sub(safe, extra)), low);
  }

  /// The elements at these places, [n, channels, ...]; zeros outside.
  Value pick(const std::array<Value, 3>& places) {
    Value flat = kNoValue;
    Value inside = kNoValue;
    for (std::int64_t i = 0; i < 3; ++i) {
      const Value place = clipped(places[at(i)], i);
      const Value here = l_.compare("Equal", place, places[at(i)]);
      inside = inside == kNoValue
                   ? here
                   : l_.emit("And", {inside, here}, {}, {Dtype::boolean, l_.shape(here)});
      const Value whole = l_.cast(place, Dtype::i64);
      flat = flat == kNoValue ? whole : l_.add(l_.mul(flat, l_.size(size(i))), whole);
    }
    const Shape& out = l_.result().shape;
    const Int count = numel(Shape(out.begin() + 2, out.end()));
    const Int volume = size(0) * size(1) * size(2);
    const Value elements = l_.reshape(x_, {out[0], out[1], volume});
    const Value index = l_.expand(l_.reshape(flat, {out[0], 1, count}), {out[0], out[1], count});
    const Value found = l_.reshape(gather_elements(l_, elements, index, 2), out);
    return l_.where(l_.unsqueeze(inside, {1}), found, number(0));
  }

  Lower& l_;
  Value x_, grid_;
  Border border_;
  bool align_corners_;
};

}  // namespace

Values grid_sampler(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value x = l.in("input", Dtype::f32);
  const Value grid = l.in("grid", Dtype::f32);
  const std::int64_t mode = l.call().number("interpolation_mode");
  const std::int64_t border = l.call().number("padding_mode");
  const bool align_corners = l.call().flag("align_corners");
  const std::array<std::string, 3> borders{"zeros", "border", "reflection"};
  const std::array<std::string, 3> names =
      l.opset() < 20 ? std::array<std::string, 3>{"bilinear", "nearest", "bicubic"}
                     : std::array<std::string, 3>{"linear", "nearest", "cubic"};
  if (l.rank(x) == 5 && l.opset() < 20) {
    Sampler sampler(l, x, grid, static_cast<Border>(border), align_corners);
    return {l.cast(mode == 0 ? sampler.linear() : sampler.nearest(), own)};
  }
  return {l.cast(l.emit("GridSample", {x, grid},
                        {{"mode", {names[at(mode)]}},
                         {"padding_mode", {borders[at(border)]}},
                         {"align_corners", {Int(align_corners ? 1 : 0)}}},
                        {Dtype::f32, l.result().shape}),
                 own)};
}

}  // namespace modelport::ops::onnx
