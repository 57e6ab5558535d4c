// ScatterElements with torch's reductions, and Where and ScatterND for masks.
#include "ops/onnx/scatter.h"

#include <algorithm>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

struct Scatter {
  Value x, index, src;
  std::int64_t axis = 0;
};

/// Without axes there is one element, along an axis of one.
Value with_an_axis(Lower& l, Value x) { return l.rank(x) == 0 ? l.reshape(x, {1}) : x; }

/// The part of src that index has positions for.
Value part_like(Lower& l, Value src, Value index) {
  for (std::int64_t i = 0; i < l.rank(index); ++i) {
    const Int& size = l.shape(index)[at(i)];
    if (!(l.shape(src)[at(i)] == size)) src = cut(l, src, i, 0, size, size);
  }
  return src;
}

Scatter scatter_of(Lower& l) {
  Scatter call{with_an_axis(l, l.in("self")), with_an_axis(l, l.in("index")), kNoValue, 0};
  call.axis = l.axis("dim", l.rank(call.x));
  return call;
}

Scatter scatter_with_src(Lower& l) {
  Scatter call = scatter_of(l);
  call.src = part_like(l, with_an_axis(l, l.in("src", l.dtype(call.x))), call.index);
  return call;
}

/// Before opset 18 the greatest and the least are found by comparing each position with each.
Value dense_extreme(Lower& l, const Scatter& call, bool greatest_one) {
  const std::int64_t last = l.rank(call.x) - 1;
  const Dtype dtype = l.dtype(call.x);
  const Value neutral = greatest_one ? least(l, dtype) : greatest(l, dtype);
  const Value index =
      l.unsqueeze(l.cast(move_axis(l, call.index, call.axis, last), Dtype::i64), {last});
  const Value src = l.unsqueeze(move_axis(l, call.src, call.axis, last), {last});
  const Int& targets = l.shape(call.x)[at(call.axis)];
  const Value hit = l.compare("Equal", index, lattice(l, {targets, 1}, {1, 0}));
  const Value found = l.reduce(greatest_one ? "ReduceMax" : "ReduceMin", l.where(hit, src, neutral),
                               {last + 1}, false);
  const Value back = move_axis(l, found, last, call.axis);
  Shape ends;
  for (std::int64_t i = 0; i <= last; ++i)
    ends.push_back(l.shape(call.x)[at(i)] - l.shape(back)[at(i)]);
  const Value all = bordered(l, back, Shape(ends.size(), 0), ends, neutral);
  return l.binary(greatest_one ? "Max" : "Min", call.x, all);
}

Value extreme(Lower& l, const Scatter& call, bool greatest_one) {
  const Dtype own = l.dtype(call.x);
  const bool half = own == Dtype::f16 || own == Dtype::bf16;
  if (l.opset() >= 18)
    return scatter_elements(l, call.x, call.index, call.src, call.axis,
                            greatest_one ? "max" : "min");
  const bool small = byte_size(own) < 4;
  if (!small) return dense_extreme(l, call, greatest_one);
  const Dtype wide = half ? Dtype::f32 : Dtype::i32;
  const Scatter wider{l.cast(call.x, wide), call.index, l.cast(call.src, wide), call.axis};
  return l.cast(dense_extreme(l, wider, greatest_one), own);
}

Value filled_like(Lower& l, Value value, Value like) { return l.expand(value, l.shape(like)); }

Value mean(Lower& l, const Scatter& call, bool include_self) {
  const Dtype dtype = l.dtype(call.x);
  const Value one = l.number(std::int64_t{1}, dtype);
  const Value zero = l.number(std::int64_t{0}, dtype);
  Value sum = call.x;
  if (!include_self)
    sum = scatter_elements(l, call.x, call.index, filled_like(l, zero, call.index), call.axis);
  sum = scatter_elements(l, sum, call.index, call.src, call.axis, "add");
  const Value none = filled_like(l, include_self ? one : zero, call.x);
  Value count =
      scatter_elements(l, none, call.index, filled_like(l, one, call.index), call.axis, "add");
  if (!include_self) count = l.binary("Max", count, one);
  if (is_floating(dtype)) return l.div(sum, count);
  // Integers are rounded down.
  return l.div(l.sub(sum, l.binary("Mod", sum, count)), count);
}

/// x with the elements that are hit set to what leaves the others as they are.
Value blanked(Lower& l, const Scatter& call, Value neutral) {
  return scatter_elements(l, call.x, call.index, filled_like(l, neutral, call.index), call.axis);
}

Value reduced(Lower& l, Scatter call, std::string_view how, bool include_self) {
  const Dtype dtype = l.dtype(call.x);
  if (how == "mean") return mean(l, call, include_self);
  const bool product = how == "prod" || how == "multiply";
  if (!include_self) {
    const Value neutral = how == "amax"   ? least(l, dtype)
                          : how == "amin" ? greatest(l, dtype)
                                          : l.number(std::int64_t{product}, dtype);
    call.x = blanked(l, call, neutral);
  }
  if (how == "amax" || how == "amin") return extreme(l, call, how == "amax");
  return scatter_elements(l, call.x, call.index, call.src, call.axis, product ? "mul" : "add");
}

/// A list of positions along an axis of `source` as positions of each of its elements.
Scatter along_axis(Lower& l, Value source) {
  Scatter call{with_an_axis(l, l.in("self")), kNoValue, with_an_axis(l, source), 0};
  call.axis = l.axis("dim", l.rank(call.x));
  Shape along(l.shape(call.x).size(), 1);
  const Value list = with_an_axis(l, l.in("index"));
  along[at(call.axis)] = l.shape(list)[0];
  call.index = l.expand(l.reshape(list, along), l.shape(call.src));
  return call;
}

/// Whole rows are written at once along the first axis.
Value written_along(Lower& l, Value source, std::string_view reduction) {
  const Value x = l.in("self");
  if (l.rank(x) > 0 && l.axis("dim", l.rank(x)) == 0) {
    const Value list = with_an_axis(l, l.in("index"));
    const Shape rows = with_size(l.shape(x), 0, l.shape(list)[0]);
    return scatter_rows(l, x, l.unsqueeze(list, {1}), l.reshape(source, rows), reduction);
  }
  const Scatter call = along_axis(l, source);
  const Value written = scatter_elements(l, call.x, call.index, call.src, call.axis, reduction);
  return l.reshape(written, l.shape(x));
}

}  // namespace

Values scatter_src(Lower& l) {
  const Scatter call = scatter_with_src(l);
  return {
      l.reshape(scatter_elements(l, call.x, call.index, call.src, call.axis), l.result().shape)};
}

Values scatter_value(Lower& l) {
  Scatter call = scatter_of(l);
  call.src = filled_like(l, l.in("value", l.dtype(call.x)), call.index);
  const bool reduces = l.call().op().name == "aten.scatter.value_reduce";
  const Value written = reduces ? reduced(l, call, l.call().string("reduce"), true)
                                : scatter_elements(l, call.x, call.index, call.src, call.axis);
  return {l.reshape(written, l.result().shape)};
}

Values scatter_reduce(Lower& l) {
  const std::string_view name = l.call().op().name;
  const std::string_view how = name == "aten.scatter_add" ? "sum" : l.call().string("reduce");
  const bool include_self = name != "aten.scatter_reduce.two" || l.call().flag("include_self");
  return {l.reshape(reduced(l, scatter_with_src(l), how, include_self), l.result().shape)};
}

Values index_add(Lower& l) {
  const Dtype dtype = l.result().dtype;
  Value source = l.in("source", dtype);
  const ir::Arg& alpha = l.call().arg("alpha");
  const bool plain = alpha.get<Int>() != nullptr && *alpha.get<Int>() == Int(1);
  if (!plain && is_complex(dtype)) l.refuse("complex numbers are added up without a factor");
  if (!plain) source = l.mul(source, l.number_of(alpha, dtype));
  return {written_along(l, source, "add")};
}

Values index_copy(Lower& l) { return {written_along(l, l.in("source", l.result().dtype), "none")}; }

Values index_fill(Lower& l) {
  const Value x = l.in("self");
  const Value list = with_an_axis(l, l.in("index"));
  if (l.rank(x) == 0) return {l.expand(l.in("value", l.dtype(x)), {})};
  const Shape shape = with_size(l.shape(x), l.axis("dim", l.rank(x)), l.shape(list)[0]);
  return {written_along(l, l.expand(l.in("value", l.dtype(x)), shape), "none")};
}

Values index_reduce(Lower& l) {
  const Scatter call = along_axis(l, l.in("source", l.result().dtype));
  const Value written = reduced(l, call, l.call().string("reduce"), l.call().flag("include_self"));
  return {l.reshape(written, l.result().shape)};
}

Values put(Lower& l) {
  const Value x = l.in("self");
  const Value index = flat(l, l.in("index"));
  const Value source = flat(l, l.in("source", l.dtype(x)));
  const bool accumulate = l.call().flag("accumulate");
  const Value written =
      scatter_elements(l, flat(l, x), index, source, 0, accumulate ? "add" : "none");
  return {l.reshape(written, l.shape(x))};
}

Values masked_fill(Lower& l) {
  const Value x = l.in("self");
  return {l.where(l.in("mask", Dtype::boolean), l.in("value", l.dtype(x)), x)};
}

namespace {

/// The mask before its last axes were expanded, if they were: whole rows are hit or missed.
Value row_mask(Lower& l, Value mask, const Shape& shape) {
  if (l.graph().value(mask).origin == ir::Origin::node) {
    const ir::Node& node = l.graph().node(l.graph().value(mask).producer);
    if (node.op == "onnx.Expand") {
      const Value before = *(*node.find("inputs")->get<ir::ArgList>())[0].get<Value>();
      if (l.rank(before) == l.rank(mask)) mask = before;
    }
  }
  if (l.rank(mask) != static_cast<std::int64_t>(shape.size())) return l.expand(mask, shape);
  std::int64_t rows = l.rank(mask);
  while (rows > 1 && l.shape(mask)[at(rows - 1)] == Int(1)) --rows;
  std::vector<std::int64_t> dropped;
  for (std::int64_t i = rows; i < l.rank(mask); ++i) dropped.push_back(i);
  return l.expand(l.squeeze(mask, dropped), leading(shape, rows));
}

}  // namespace

Values masked_scatter(Lower& l) {
  const Shape& shape = l.result().shape;
  const Value x = l.expand(l.in("self"), shape);
  const Value mask = row_mask(l, l.in("mask", Dtype::boolean), shape);
  if (shape.empty()) l.refuse("masked_scatter of a tensor without axes");
  const Shape row = from(shape, l.rank(mask));
  const Int count = l.call().dims().fresh("picked", 1, {0, shape::Range::kUnbounded});
  const Value found = places(l, mask, count);
  l.sources().learn_sizes(found, l.shape(found));
  // The source is read in order, as far as there are places for it.
  Value source = l.in("source", l.dtype(x));
  const bool has_rows = l.rank(source) == static_cast<std::int64_t>(row.size()) + 1 &&
                        from(l.shape(source), 1) == row;
  if (has_rows) {
    source = cut(l, source, 0, 0, count, count);
  } else {
    const Int taken = count * numel(row);
    source = l.reshape(cut(l, flat(l, source), 0, 0, taken, taken), joined({count}, row));
  }
  return {scatter_rows(l, x, l.swap_axes(found, 0, 1), source)};
}

}  // namespace modelport::ops::onnx
