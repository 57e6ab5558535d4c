// Pictures and volumes read at places between their elements: the elements around each place are
// gathered, each with its weight. Serves sizes that change, which the runtime's kernel does not.
#include "ops/decompositions/neural.h"
#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {
namespace {

enum Interpolation : std::int64_t { kLinear, kNearest, kCubic };
enum Padding : std::int64_t { kZeros, kBorder, kReflection };

/// One axis of the picture: its size, and where on it each point of the grid lies.
struct Line {
  Int size;
  Value last;    // size - 1
  Value places;  // [batch, points]
};

class GridSampler {
 public:
  explicit GridSampler(Emitter& emitter)
      : e(emitter),
        t(emitter),
        dtype_(working_dtype(e.result().dtype)),
        corners_align_(e.call().flag("align_corners")) {}

  Value run() {
    const Value input = t.in("input");
    const Shape shape = e.shape(input);
    const std::int64_t axes = e.rank(input) - 2;
    const Value grid = t.in("grid");
    const Shape around(shape.begin() + 2, shape.end());
    flat_ = viewed(e, input, {shape[0], shape[1], numel(around)});
    batch_ = e.result().shape[0];
    points_ = numel(Shape(e.result().shape.begin() + 2, e.result().shape.end()));
    for (std::int64_t i = 0; i < axes; ++i)
      lines_.push_back(line(shape[at(i + 2)], selected(e, grid, axes + 1, axes - 1 - i)));
    const bool nearest = e.call().number("interpolation_mode") == kNearest;
    Value sum = kNoValue;
    for (std::size_t corner = 0; corner < (nearest ? 1U : 1U << lines_.size()); ++corner) {
      const Value one = weighted_corner(corner, nearest);
      sum = sum == kNoValue ? one : t.add(sum, one);
    }
    return t.done(viewed(e, sum, e.result().shape));
  }

 private:
  /// From -1 ... 1 to elements.
  Line line(const Int& size, Value given) {
    const Value last = t.size(size - 1, dtype_);
    Value x = t.add(viewed(e, given, {batch_, points_}), 1.0);
    x = corners_align_ ? t.mul(t.mul(x, 0.5), last)
                       : t.mul(t.sub(t.mul(x, t.size(size, dtype_)), 1.0), 0.5);
    const std::int64_t padding = e.call().number("padding_mode");
    if (padding == kReflection) x = reflected(x, size);
    if (padding != kZeros) x = within(x, last);
    return {size, last, x};
  }

  Value reflected(Value x, const Int& size) {
    const double low = corners_align_ ? 0.0 : -0.5;
    const Value span = t.size(corners_align_ ? size - 1 : size, dtype_);
    const Value distance = t.of("abs", t.sub(x, low));
    const Value flips = t.of("floor", t.div(distance, t.max(span, 1.0)));
    const Value extra = t.sub(distance, t.mul(flips, span));
    const Value halves = t.mul(flips, 0.5);
    const Value even = t.is("eq", halves, t.of("floor", halves));
    const Value back = t.where(even, t.add(extra, low), t.add(t.sub(span, extra), low));
    return t.where(t.is("gt", span, 0.0), back, t.mul(x, 0.0));
  }

  Value within(Value x, Value last) { return t.max(t.min(x, last), 0.0); }

  Value weighted_corner(std::size_t corner, bool nearest) {
    Value index = kNoValue;
    Value weight = kNoValue;
    Value inside = kNoValue;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      const bool upper = (corner >> i & 1) != 0;
      const Value base = t.of(nearest ? "round" : "floor", line.places);
      const Value place = upper ? t.add(base, 1.0) : base;
      const Value part = t.sub(line.places, base);
      const Value own_weight = upper ? part : t.sub(t.filled({}, 1.0, dtype_), part);
      const Value own_inside = t.both(t.is("ge", place, 0.0), t.is("le", place, line.last));
      const Value own_index = t.cast(within(place, line.last), Dtype::i64);
      weight = weight == kNoValue ? own_weight : t.mul(weight, own_weight);
      inside = inside == kNoValue ? own_inside : t.both(inside, own_inside);
      index = index == kNoValue ? own_index
                                : t.add(t.mul(index, t.size(line.size, Dtype::i64)), own_index);
    }
    const Shape whole{batch_, e.shape(flat_)[1], points_};
    const Value picked = e.call("aten.gather", {flat_, 2, t.expand(t.unsqueeze(index, 1), whole)});
    const Value seen = nearest ? picked : t.mul(picked, t.unsqueeze(weight, 1));
    return t.where(t.unsqueeze(inside, 1), seen, t.filled({}, 0.0, dtype_));
  }

  Emitter& e;
  Terms t;
  Dtype dtype_;
  bool corners_align_;
  Value flat_ = kNoValue;  // [batch, channels, elements]
  Int batch_, points_;
  std::vector<Line> lines_;
};

}  // namespace

Value grid_sampler_by_gathering(Emitter& e) {
  if (e.call().number("interpolation_mode") == kCubic)
    e.refuse("cubic interpolation of sizes that change");
  return GridSampler(e).run();
}

}  // namespace modelport::ops::parts
