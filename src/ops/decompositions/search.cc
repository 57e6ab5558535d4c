// Sorting by the runtime's topk, and searching by comparing with everything.
#include "ops/decompositions/indexing.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

Value negated(Emitter& e, Value x) { return e.call("aten.logical_not", {x}); }

/// How many of the boundaries lie before each value, which has a last axis of one element.
Value boundaries_before(Emitter& e, Value boundaries, Value x, bool right) {
  const Value before = compare(e, right ? "aten.le.Tensor" : "aten.lt.Tensor", boundaries, x);
  const Value count = sum_over(e, cast(e, before, Dtype::i64), {e.rank(before) - 1});
  return cast(e, count, e.result().dtype);
}

/// topk leaves the order of equal elements open. Whole numbers get their place as a second key.
Values sorted(Emitter& e, Value x, std::int64_t axis, bool descending) {
  const Shape shape = e.shape(x);
  const Dtype dtype = e.dtype(x);
  if (shape.empty()) return {x, e.number(std::int64_t{0}, Dtype::i64)};
  const Int size = shape[at(axis)];
  if (is_floating(dtype)) return e.calls("aten.topk", {x, size, axis, descending, true});
  Shape line(shape.size(), Int(1));
  line[at(axis)] = size;
  Value places = counted(e, size);
  if (descending) places = e.call("aten.rsub.Scalar", {places, size - 1});
  const Value keys =
      add(e, e.call("aten.mul.Scalar", {cast(e, x, Dtype::i64), size}), viewed(e, places, line));
  const Value order = e.calls("aten.topk", {keys, size, axis, descending, true})[1];
  return {e.call("aten.gather", {x, axis, order}), order};
}

}  // namespace

Values sort(Emitter& e) {
  const Value x = e.tensor("self");
  return sorted(e, x, e.axis("dim", e.rank(x)), e.call().flag("descending"));
}

Value argsort(Emitter& e) {
  const Value x = e.tensor("self");
  return sorted(e, x, e.axis("dim", e.rank(x)), e.call().flag("descending"))[1];
}

Value msort(Emitter& e) { return sorted(e, e.tensor("self"), 0, false)[0]; }

Values kthvalue(Emitter& e) {
  const Value x = e.tensor("self");
  if (e.rank(x) == 0) return {x, e.number(std::int64_t{0}, Dtype::i64)};
  const std::int64_t axis = e.axis("dim", e.rank(x));
  const Int k = e.call().integer("k");
  Values results = e.calls("aten.topk", {x, k, axis, false, true});
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = viewed(e, sliced(e, results[i], axis, k - 1, k), e.result(i).shape);
  return results;
}

Value bucketize(Emitter& e) {
  const Value boundaries = e.tensor("boundaries");
  const Value x = e.call().is_tensor("self") ? e.call("aten.unsqueeze", {e.arg("self"), -1})
                                             : e.number(e.real_number("self"), Dtype::f32);
  return boundaries_before(e, boundaries, x, e.call().flag("right"));
}

Value searchsorted(Emitter& e) {
  Value boundaries = e.tensor("sorted_sequence");
  if (e.has("sorter")) boundaries = e.call("aten.gather", {boundaries, -1, e.arg("sorter")});
  const bool right =
      e.call().flag("right") || (e.has("side") && e.call().string("side") == "right");
  if (!e.call().is_tensor("self"))
    return boundaries_before(e, boundaries, e.number(e.real_number("self"), Dtype::f32), right);
  const Value x = e.call("aten.unsqueeze", {e.arg("self"), -1});
  if (e.rank(boundaries) > 1) boundaries = e.call("aten.unsqueeze", {boundaries, -2});
  return boundaries_before(e, boundaries, x, right);
}

Value isin(Emitter& e) {
  Value found = kNoValue;
  if (!e.call().is_tensor(schema_of(e.call().op()).parameters[1].name)) {
    found = e.call("aten.eq.Scalar", {e.arg("elements"), e.arg("test_element")});
  } else {
    const Value tests = e.tensor("test_elements");
    const Shape line{numel(e.shape(tests))};
    if (line[0] == Int(0))
      return filled(e, e.result().shape, e.call().flag("invert") ? 1 : 0, Dtype::boolean);
    const bool is_number = schema_of(e.call().op()).find("element") != nullptr;
    const Value flat = viewed(e, tests, line);
    const Value hits = is_number ? e.call("aten.eq.Scalar", {flat, e.arg("element")})
                                 : compare(e, "aten.eq.Tensor",
                                           e.call("aten.unsqueeze", {e.arg("elements"), -1}), flat);
    found = e.call("aten.any.dim", {hits, -1});
  }
  return e.call().flag("invert") ? negated(e, found) : found;
}

}  // namespace modelport::ops::parts
