// Reductions. onnxruntime's own ignore a NaN that does not come first; torch gives NaN.
#include "ops/onnx/reduce.h"

#include "base/not_finite.h"
#include "ops/onnx/kernels.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

Value on_parts(Lower& l, std::string_view op, Value x, const std::vector<std::int64_t>& axes,
               bool keepdim) {
  if (is_complex(l.dtype(x))) return l.from_pairs(l.reduce(op, l.as_pairs(x), axes, keepdim));
  return l.reduce(op, x, axes, keepdim);
}

Value extreme_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim,
                    std::string_view op) {
  const Value extreme = l.reduce(op, x, axes, keepdim);
  if (is_whole(l.dtype(x)) || axes.empty()) return extreme;
  const Value bad =
      l.cast(l.reduce("ReduceMax", l.cast(is_nan(l, x), Dtype::u8), axes, keepdim), Dtype::boolean);
  return l.where(bad, like(l, extreme, kNan), extreme);
}

Values truth(Lower& l, std::string_view op) {
  const Value x = l.in("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  const Value truths = l.cast(x, Dtype::boolean);
  const auto axes = reduced_axes(l);
  // Bools are ordered from opset 20 on, but there is no least one of none; of bytes there is.
  if (l.opset() >= 20 && !axes.empty() && l.surely_at_least(reduced_count(l, x, axes), 1)) {
    const ir::TensorType type{Dtype::boolean, reduce(l.shape(x), axes, keeps_axes(l))};
    return done(l, l.emit(op, {truths, l.ints(axes)}, {{"keepdims", {Int(keeps_axes(l))}}}, type));
  }
  const Value result = l.reduce(op, l.cast(truths, Dtype::u8), axes, keeps_axes(l));
  return done(l, l.cast(result, Dtype::boolean));
}

/// The operand; floats that there is no arithmetic in are widened once.
Value operand(Lower& l) {
  const Value x = l.in("self");
  return is_whole(l.dtype(x)) ? x : l.cast(x, working_dtype(l.dtype(x)));
}

Values extreme(Lower& l, bool largest) {
  const auto along = largest ? greatest_along : least_along;
  return done(l, along(l, operand(l), reduced_axes(l), keeps_axes(l)));
}

Values argument(Lower& l, bool largest) {
  const Value x = l.in("self");
  const Shape& shape = l.result().shape;
  if (l.rank(x) == 0) return {l.number(std::int64_t{0}, Dtype::i64)};
  if (l.has("dim")) {
    const std::int64_t axis = l.axis("dim", l.rank(x));
    return {
        drop_axis(l, position_of(l, x, {.axis = axis, .largest = largest}), axis, keeps_axes(l))};
  }
  return {l.reshape(position_of(l, flat(l, x), {.largest = largest}), shape)};
}

Values value_and_position(Lower& l, bool largest) {
  const Value x = l.in("self");
  if (l.rank(x) == 0) return {x, l.number(std::int64_t{0}, Dtype::i64)};
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const bool keep = keeps_axes(l);
  const Value position = position_of(l, x, {.axis = axis, .largest = largest});
  const Value value = gather_elements(l, x, position, axis);
  return {drop_axis(l, value, axis, keep), drop_axis(l, position, axis, keep)};
}

/// The lower one of the middle elements along an axis, and where it is. NaN comes last in the
/// order; the median is NaN where there is one, unless they are left out.
Values middle(Lower& l, Value x, std::int64_t axis, bool skip_nan) {
  const Int& size = l.shape(x)[at(axis)];
  const bool whole = is_whole(l.dtype(x));
  const Value bad = whole ? kNoValue : is_nan(l, x);
  const Value ordered = whole ? x : l.where(bad, like(l, x, kInfinity), x);
  const Values sorted = top(l, ordered, size, axis, false);
  const Shape one = reduce(l.shape(x), {axis}, true);
  Value place;
  if (whole || !skip_nan) {
    place = l.filled(l.scalar(shape::floor_div(size - 1, 2)), one);
  } else {
    const Value count = l.reduce("ReduceSum", l.cast(l.logical_not(bad), Dtype::i64), {axis}, true);
    const Value last = l.binary("Max", l.sub(count, l.ints({1})), l.ints({0}));
    place = l.div(last, l.ints({2}));
  }
  Value position = gather_elements(l, sorted[1], place, axis);
  if (!whole && !skip_nan) {
    const Value numbers = l.cast(bad, Dtype::u8);
    const Value any_bad = l.cast(l.reduce("ReduceMax", numbers, {axis}, true), Dtype::boolean);
    position = l.where(any_bad, position_of(l, numbers, {.axis = axis}), position);
  }
  return {gather_elements(l, x, position, axis), position};
}

Values middle_cell(Lower& l, bool skip_nan) {
  const Value self = l.in("self");
  if (l.rank(self) == 0) {
    if (l.result_count() == 1) return {self};
    return {self, l.number(std::int64_t{0}, Dtype::i64)};
  }
  const Value x = l.cast(self, kernel_dtype("Add", l.dtype(self)));
  if (l.result_count() == 1) return done(l, l.reshape(middle(l, flat(l, x), 0, skip_nan)[0], {}));
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Values both = middle(l, x, axis, skip_nan);
  return {l.cast(drop_axis(l, both[0], axis, keeps_axes(l)), l.dtype(self)),
          drop_axis(l, both[1], axis, keeps_axes(l))};
}

}  // namespace

std::vector<std::int64_t> reduced_axes(Lower& l) {
  const std::int64_t rank = l.rank(l.in("self"));
  if (rank == 0) return {};
  if (schema_of(l.call().op()).find("dim") != nullptr) return axes_of(l.call(), "dim", rank);
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

bool keeps_axes(Lower& l) {
  return schema_of(l.call().op()).find("keepdim") != nullptr && l.call().flag("keepdim");
}

Int reduced_count(Lower& l, Value x, const std::vector<std::int64_t>& axes) {
  Int count = 1;
  for (const std::int64_t axis : axes) count *= l.shape(x)[at(axis)];
  return count;
}

Value drop_axis(Lower& l, Value x, std::int64_t axis, bool keepdim) {
  return keepdim ? x : l.squeeze(x, {axis});
}

Value greatest_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim) {
  return extreme_along(l, x, axes, keepdim, "ReduceMax");
}
Value least_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim) {
  return extreme_along(l, x, axes, keepdim, "ReduceMin");
}

Value position_of(Lower& l, Value x, const Search& search) {
  const Dtype own = l.dtype(x);
  const Dtype work = own == Dtype::u8 || own == Dtype::i8 ? own : kernel_dtype("Add", own);
  Value ordered = l.cast(x, work);
  // The first NaN is the answer.
  if (!is_whole(own))
    ordered =
        l.where(is_nan(l, x), like(l, ordered, search.largest ? kInfinity : -kInfinity), ordered);
  Attributes attributes{{"axis", {Int(search.axis)}}};
  if (search.last) attributes.push_back({"select_last_index", {Int(1)}});
  return l.emit(search.largest ? "ArgMax" : "ArgMin", {ordered}, attributes,
                {Dtype::i64, reduce(l.shape(x), {search.axis}, true)});
}

Value sum_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim) {
  const std::int64_t last = l.rank(x) - 1;
  const bool hashes = l.dtype(x) == Dtype::i64 && axes == std::vector<std::int64_t>{last};
  const auto size = hashes ? l.shape(x)[at(last)].constant() : std::nullopt;
  // ReduceSum adds integers as doubles; a product is exact beyond 2^53 as well.
  if (size && *size > 0 && *size <= 64) {
    const std::vector<std::int64_t> ones(at(*size), 1);
    return l.matmul(x, keepdim ? l.constant_ints(Dtype::i64, {*size, 1}, ones) : l.ints(ones));
  }
  return on_parts(l, "ReduceSum", x, axes, keepdim);
}

Value mean_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim) {
  const Int count = reduced_count(l, x, axes);
  if (axes.empty() || l.surely_at_least(count, 1))
    return on_parts(l, "ReduceMean", x, axes, keepdim);
  // ReduceMean of nothing is 0; 0 / 0 is what torch says.
  const Value parts = is_complex(l.dtype(x)) ? l.as_pairs(x) : x;
  const Value total = l.reduce("ReduceSum", parts, axes, keepdim);
  const Value mean = l.div(total, l.cast(l.scalar(count), l.dtype(parts)));
  return is_complex(l.dtype(x)) ? l.from_pairs(mean) : mean;
}

Values all(Lower& l) { return truth(l, "ReduceMin"); }
Values any(Lower& l) { return truth(l, "ReduceMax"); }
Values amax(Lower& l) { return extreme(l, true); }
Values amin(Lower& l) { return extreme(l, false); }
Values aminmax(Lower& l) { return {extreme(l, false)[0], extreme(l, true)[0]}; }
Values argmax(Lower& l) { return argument(l, true); }
Values argmin(Lower& l) { return argument(l, false); }
Values max_dim(Lower& l) { return value_and_position(l, true); }
Values min_dim(Lower& l) { return value_and_position(l, false); }
Values median(Lower& l) { return middle_cell(l, false); }
Values nanmedian(Lower& l) { return middle_cell(l, true); }

// Each element against each other one; of the most frequent ones the least, at its last place.
Values mode(Lower& l) {
  const Value self = l.in("self");
  if (l.rank(self) == 0) return {self, l.number(std::int64_t{0}, Dtype::i64)};
  const Value x = l.cast(self, kernel_dtype("Where", l.dtype(self)));
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Value same = l.compare("Equal", l.unsqueeze(x, {axis}), l.unsqueeze(x, {axis + 1}));
  const Value count = l.reduce("ReduceSum", l.cast(same, Dtype::i32), {axis + 1}, false);
  const Value most = l.reduce("ReduceMax", count, {axis}, true);
  const Value candidates = l.where(l.compare("Equal", count, most), x, greatest(l, l.dtype(x)));
  const Value value = l.reduce("ReduceMin", candidates, {axis}, true);
  const Value places = l.cast(l.compare("Equal", x, value), Dtype::u8);
  const Value position = position_of(l, places, {.axis = axis, .last = true});
  return {l.cast(drop_axis(l, value, axis, keeps_axes(l)), l.dtype(self)),
          drop_axis(l, position, axis, keeps_axes(l))};
}

Values mean(Lower& l) {
  const Value x = l.in("self", working_dtype(l.result().dtype));
  return done(l, mean_along(l, x, reduced_axes(l), keeps_axes(l)));
}

Values nansum(Lower& l) {
  const Dtype work = working_dtype(l.result().dtype);
  const Value x = l.in("self", work);
  const Value numbers = is_whole(work) ? x : l.where(is_nan(l, x), like(l, x, 0), x);
  return done(l, sum_along(l, numbers, reduced_axes(l), keeps_axes(l)));
}

Values prod(Lower& l) {
  if (is_complex(l.result().dtype)) l.refuse("no rule for complex numbers");
  const Value x = l.in("self", working_dtype(l.result().dtype));
  return done(l, l.reduce("ReduceProd", x, reduced_axes(l), keeps_axes(l)));
}

Values sum(Lower& l) {
  const Dtype given = l.dtype(l.in("self"));
  const Dtype work = working_dtype(l.result().dtype);
  const Value x = l.in("self", work);
  // What was no i64 cannot add up to more than a double holds.
  if (given == Dtype::i64) return done(l, sum_along(l, x, reduced_axes(l), keeps_axes(l)));
  return done(l, on_parts(l, "ReduceSum", x, reduced_axes(l), keeps_axes(l)));
}

}  // namespace modelport::ops::onnx
