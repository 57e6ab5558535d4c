// Elements picked and written by index.
#include <limits>

#include "ops/decompositions/indexing.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

/// The index of rows along an axis, as one for each element of `shape`.
Value index_for_all(Emitter& e, const Shape& shape, std::int64_t axis) {
  const Value index = cast(e, e.tensor("index"), Dtype::i64);
  Shape line(shape.size(), Int(1));
  if (!line.empty()) line[at(axis)] = numel(e.shape(index));
  Shape whole = shape;
  if (!whole.empty()) whole[at(axis)] = numel(e.shape(index));
  return expanded(e, viewed(e, index, line), whole);
}

/// What comes out of elements that go to the same place, and which places there are: sums and
/// counts are kept by the runtime, other things are looked for among all elements.
struct Reduced {
  Value values, touched;
};

double neutral(std::string_view reduce, Dtype dtype) {
  const bool real = is_floating(dtype);
  const double most = real ? std::numeric_limits<double>::infinity() : 2147483647.0;
  return reduce == "prod" ? 1 : reduce == "amax" ? -most : most;
}

Reduced found_among_all(Emitter& e, const Shape& result, std::int64_t axis, Value index, Value src,
                        std::string_view reduce) {
  const Shape picked = e.shape(index);
  const std::int64_t rank = static_cast<std::int64_t>(picked.size());
  Shape line(picked.size() + 1, Int(1));
  line[at(axis)] = result[at(axis)];
  const Value places = viewed(e, counted(e, result[at(axis)]), line);
  const Value hits = compare(e, "aten.eq.Tensor", with_axis_at(e, index, axis), places);
  const double nothing = neutral(reduce, e.dtype(src));
  const Value candidates =
      where(e, hits, with_axis_at(e, src, axis),
            is_floating(e.dtype(src)) ? e.number(nothing, e.dtype(src))
                                      : e.number(static_cast<std::int64_t>(nothing), e.dtype(src)));
  Value found = kNoValue;
  if (reduce == "prod") {
    found = e.call("aten.prod.dim_int", {candidates, axis + 1}, {{"dtype", e.dtype(src)}});
  } else {
    found = e.call(reduce == "amax" ? "aten.amax" : "aten.amin", {candidates, {axis + 1}});
  }
  Value touched = e.call("aten.any.dim", {hits, axis + 1});
  Shape pads;
  for (std::int64_t i = rank - 1; i >= 0; --i) {
    pads.push_back(0);
    pads.push_back(i == axis ? Int(0) : result[at(i)] - picked[at(i)]);
  }
  return {padded(e, found, pads, nothing), padded(e, touched, pads, 0)};
}

Value combined(Emitter& e, std::string_view reduce, Value a, Value b) {
  return e.call(reduce == "prod"   ? "aten.mul.Tensor"
                : reduce == "amax" ? "aten.maximum"
                                   : "aten.minimum",
                {a, b});
}

Value mean_of(Emitter& e, Value self, std::int64_t axis, Value index, Value src, bool own) {
  const Dtype dtype = e.dtype(self);
  const Value ones = filled(e, e.shape(index), 1, dtype);
  Value sums = self;
  Value counts = filled(e, e.shape(self), 1, dtype);
  if (!own) {
    sums = e.call("aten.scatter.value", {self, axis, index, 0});
    counts = e.call("aten.scatter.value", {counts, axis, index, 0});
  }
  sums = e.call("aten.scatter_add", {sums, axis, index, src});
  counts = e.call("aten.scatter_add", {counts, axis, index, ones});
  if (is_floating(dtype)) return div(e, sums, counts);
  return e.call("aten.div.Tensor_mode", {sums, counts}, {{"rounding_mode", "floor"}});
}

Value reduced_into(Emitter& e, Value self, std::int64_t axis, Value index, Value src,
                   std::string_view reduce, bool own) {
  const Shape shape = e.shape(self);
  if (shape.empty()) {
    const Shape line{Int(1)};
    return viewed(e,
                  reduced_into(e, viewed(e, self, line), 0, viewed(e, index, line),
                               viewed(e, src, line), reduce, own),
                  shape);
  }
  const Shape picked = e.shape(index);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(picked.size()); ++i)
    src = sliced(e, src, i, 0, picked[at(i)]);
  if (reduce == "sum" || reduce == "add") {
    const Value base = own ? self : e.call("aten.scatter.value", {self, axis, index, 0});
    return e.call("aten.scatter_add", {base, axis, index, src});
  }
  if (reduce == "mean") return mean_of(e, self, axis, index, src, own);
  if (reduce == "multiply") reduce = "prod";
  const Reduced found = found_among_all(e, shape, axis, index, src, reduce);
  const Value value = own ? combined(e, reduce, self, found.values) : found.values;
  return own ? value : where(e, found.touched, value, self);
}

}  // namespace

Value one_hot(Emitter& e) {
  const std::int64_t classes = e.call().number("num_classes");
  if (classes < 0) e.refuse("the number of classes must be given");
  const Value x = e.call("aten.unsqueeze", {e.arg("self"), -1});
  return cast(e, compare(e, "aten.eq.Tensor", x, counted(e, classes)), Dtype::i64);
}

Value unsafe_index(Emitter& e) {
  return e.call("aten.index.Tensor", {e.arg("self"), e.arg("indices")});
}

Value unsafe_index_put(Emitter& e) {
  return e.call("aten.index_put",
                {e.arg("self"), e.arg("indices"), e.arg("values"), e.arg("accumulate")});
}

Value take(Emitter& e) {
  const Value x = e.tensor("self");
  const Value flat = viewed(e, x, {numel(e.shape(x))});
  return e.call("aten.index.Tensor", {flat, Values{e.tensor("index")}});
}

Value take_along_dim(Emitter& e) {
  Value x = e.tensor("self");
  Value index = cast(e, e.tensor("indices"), Dtype::i64);
  if (!e.has("dim")) {
    return e.call("aten.gather", {viewed(e, x, {numel(e.shape(x))}), 0,
                                  viewed(e, index, {numel(e.shape(index))})});
  }
  const std::int64_t axis = e.axis("dim", e.rank(x));
  Shape whole = e.result().shape;
  index = expanded(e, index, with_size(whole, axis, e.shape(index)[at(axis)]));
  x = expanded(e, x, with_size(whole, axis, e.shape(x)[at(axis)]));
  return e.call("aten.gather", {x, axis, index});
}

Value masked_fill(Emitter& e) {
  const Value x = e.tensor("self");
  return where(e, e.tensor("mask"), cast(e, e.tensor("value"), e.dtype(x)), x);
}

Value index_add(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  const Value source = scaled(e, e.tensor("source"), e.real_number("alpha"));
  const Value index = index_for_all(e, e.shape(source), axis);
  return e.call("aten.scatter_add", {x, axis, index, source});
}

Value index_copy(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  const Value source = e.tensor("source");
  const Value index = index_for_all(e, e.shape(source), axis);
  return e.call("aten.scatter.src", {x, axis, index, source});
}

Value index_fill(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  const Value index = index_for_all(e, e.shape(x), axis);
  if (e.call().is_tensor("value")) {
    const Value value = cast(e, e.tensor("value"), e.dtype(x));
    return e.call("aten.scatter.src", {x, axis, index, expanded(e, value, e.shape(index))});
  }
  return e.call("aten.scatter.value", {x, axis, index, e.arg("value")});
}

Value index_reduce(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  const Value source = e.tensor("source");
  return reduced_into(e, x, axis, index_for_all(e, e.shape(source), axis), source,
                      e.call().string("reduce"), e.call().flag("include_self"));
}

Value put(Emitter& e) {
  const Value x = e.tensor("self");
  const Value index = e.tensor("index");
  const Value flat = viewed(e, x, {numel(e.shape(x))});
  const Shape line{numel(e.shape(index))};
  const Value written =
      e.call("aten.index_put", {flat, Values{viewed(e, index, line)},
                                viewed(e, e.tensor("source"), line), e.arg("accumulate")});
  return viewed(e, written, e.shape(x));
}

Value scatter_reduce(Emitter& e) {
  const Value x = e.tensor("self");
  return reduced_into(e, x, e.axis("dim", e.rank(x)), cast(e, e.tensor("index"), Dtype::i64),
                      e.tensor("src"), e.call().string("reduce"), e.call().flag("include_self"));
}

Value scatter_reduced_by(Emitter& e) {
  const Value x = e.tensor("self");
  const Value index = cast(e, e.tensor("index"), Dtype::i64);
  const bool is_number = schema_of(e.call().op()).find("value") != nullptr;
  const Value src =
      is_number ? filled(e, e.shape(index), e.real_number("value"), e.dtype(x)) : e.tensor("src");
  return reduced_into(e, x, e.axis("dim", e.rank(x)), index, src, e.call().string("reduce"), true);
}

}  // namespace modelport::ops::parts
