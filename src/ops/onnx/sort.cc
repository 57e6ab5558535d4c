// TopK of all elements sorts, and keeps equal ones in their order; searching counts the elements
// that are less.
#include "ops/onnx/sort.h"

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

Values sorted(Lower& l, Value x, std::int64_t axis, bool descending) {
  if (l.rank(x) == 0) return {x, l.number(std::int64_t{0}, Dtype::i64)};
  return top(l, x, l.shape(x)[at(axis)], axis, descending);
}

}  // namespace

Values sort(Lower& l) {
  const Value x = l.in("self");
  return sorted(l, x, l.axis("dim", l.rank(x)), l.call().flag("descending"));
}

Values argsort(Lower& l) { return {sort(l)[1]}; }
Values msort(Lower& l) { return {sorted(l, l.in("self"), 0, false)[0]}; }

Values topk(Lower& l) {
  const Value x = l.in("self");
  if (l.rank(x) == 0) return sorted(l, x, 0, true);
  return top(l, x, l.call().integer("k"), l.axis("dim", l.rank(x)), l.call().flag("largest"));
}

Values kthvalue(Lower& l) {
  const Value x = l.in("self");
  if (l.rank(x) == 0) return sorted(l, x, 0, false);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Values least_ones = top(l, x, l.call().integer("k"), axis, false);
  Values results;
  for (const Value all : least_ones) {
    results.push_back(l.call().flag("keepdim")
                          ? cut(l, all, axis, -1, kToTheEnd, 1)
                          : l.gather(all, l.number(std::int64_t{-1}, Dtype::i64), axis));
  }
  return results;
}

namespace {

/// Places at which `values` go into `sorted`, whose last axis is in order. What is compared false
/// comes after everything, as in torch: NaN goes to the end.
Value places_in(Lower& l, Value sorted, Value values, bool right) {
  const Dtype common = promote(l.dtype(sorted), l.dtype(values));
  const Dtype compared = common == Dtype::bf16 ? Dtype::f32 : common;
  sorted = l.cast(sorted, compared);
  values = l.cast(values, compared);
  const std::int64_t last = l.rank(values);
  // One list for all values, or one for each row of them.
  if (l.rank(sorted) > 1) sorted = l.unsqueeze(sorted, {l.rank(sorted) - 1});
  const Value after =
      l.compare(right ? "Greater" : "GreaterOrEqual", sorted, l.unsqueeze(values, {last}));
  const Value before = l.cast(l.logical_not(after), Dtype::i64);
  return l.cast(l.reduce("ReduceSum", before, {last}, false), l.result().dtype);
}

Value searched(Lower& l, std::string_view sequence, bool right) {
  Value sorted = l.in(sequence);
  // A plain number is compared in the type of the sequence, unless it is a float among integers.
  if (l.call().is_tensor("self")) return places_in(l, sorted, l.in("self"), right);
  const Dtype number = l.call().number_dtype("self").value();
  const Dtype dtype =
      is_floating(number) && !is_floating(l.dtype(sorted)) ? number : l.dtype(sorted);
  return places_in(l, l.cast(sorted, dtype), l.in("self", dtype), right);
}

}  // namespace

Values bucketize(Lower& l) { return {searched(l, "boundaries", l.call().flag("right"))}; }

Values searchsorted(Lower& l) {
  bool right = l.call().flag("right");
  if (l.has("side")) right = l.call().string("side") == "right";
  if (!l.has("sorter")) return {searched(l, "sorted_sequence", right)};
  const Value unsorted = l.in("sorted_sequence");
  const Value in_order = gather_elements(l, unsorted, l.in("sorter"), l.rank(unsorted) - 1);
  const Value values = l.in("self", promote(l.call(), {"sorted_sequence", "self"}));
  return {places_in(l, in_order, values, right)};
}

Values isin(Lower& l) {
  const std::string_view one = l.call().op().name;
  const std::string_view among =
      one == "aten.isin.Tensor_Scalar" ? "test_element" : "test_elements";
  const std::string_view asked = one == "aten.isin.Scalar_Tensor" ? "element" : "elements";
  Dtype common = promote(l.call(), {asked, among});
  if (common == Dtype::bf16) common = Dtype::f32;
  const Value elements = l.in(asked, common);
  const Value test = l.in(among, common);
  const bool invert = l.call().flag("invert");
  if (l.rank(test) == 0) {
    const Value equal = l.compare("Equal", elements, test);
    return {invert ? l.logical_not(equal) : equal};
  }
  const std::int64_t last = l.rank(elements);
  const Value equal = l.compare("Equal", l.unsqueeze(elements, {last}), flat(l, test));
  const Value hits = l.reduce("ReduceSum", l.cast(equal, Dtype::i32), {last}, false);
  const Value none = l.number(std::int64_t{0}, Dtype::i32);
  return {invert ? l.compare("Equal", hits, none) : l.compare("Greater", hits, none)};
}

}  // namespace modelport::ops::onnx
