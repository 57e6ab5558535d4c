// Bags of embeddings: rows of a table, added up or compared from one offset to the next.
#include "ops/onnx/index.h"
#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

constexpr std::int64_t kModeSum = 0;
constexpr std::int64_t kModeMax = 2;

struct Bags {
  Value indices;  // i64[count]
  Value rows;     // of the table
  Value bag_of;   // i64[count]
  Value counted;  // bool[count], whether the element is no padding; kNoValue if all are
  Int bags;
};

std::optional<Int> padding_of(Lower& l, const Int& table) {
  if (schema_of(l.call().op()).find("padding_idx") == nullptr || !l.has("padding_idx"))
    return std::nullopt;
  const std::int64_t index = l.call().number("padding_idx");
  if (index >= 0) return Int(index);
  // -1 is "none" to the kernels, the last row to the public operator.
  if (l.call().op().name.ends_with(".padding_idx")) return table + index;
  return std::nullopt;
}

Value bag_of_each(Lower& l, Value offsets, const Int& bags, const Int& count) {
  offsets = cut(l, l.cast(offsets, Dtype::i64), 0, 0, bags, bags);
  const Value one = l.number(std::int64_t{1}, Dtype::i64);
  const Value blank = l.filled(l.number(std::int64_t{0}, Dtype::i64), {count + 1});
  const Value marks = scatter_elements(l, blank, offsets, l.expand(one, {bags}), 0, "add");
  return cut(l, l.sub(running_sum(l, marks, 0), one), 0, 0, -1, count);
}

Bags bags_of(Lower& l) {
  const Value weight = l.in("weight");
  Bags found;
  found.bags = l.result(0).shape[0];
  found.indices = flat(l, l.in("indices", Dtype::i64));
  found.bag_of = bag_of_each(l, l.in("offsets"), found.bags, l.shape(found.indices)[0]);
  found.rows = l.gather(weight, found.indices, 0);
  if (const auto padding = padding_of(l, l.shape(weight)[0]))
    found.counted = l.logical_not(l.compare("Equal", found.indices, l.size(*padding)));
  if (l.has("per_sample_weights")) {
    const Value scale = l.in("per_sample_weights", l.dtype(found.rows));
    found.rows = l.mul(found.rows, l.unsqueeze(scale, {1}));
  }
  return found;
}

Value added_up(Lower& l, const Bags& bags, Value rows) {
  const Value zero = l.number(std::int64_t{0}, l.dtype(rows));
  if (bags.counted != kNoValue) {
    const bool wide = l.rank(rows) == 2;
    rows = l.where(wide ? l.unsqueeze(bags.counted, {1}) : bags.counted, rows, zero);
  }
  const Value blank = l.filled(zero, with_size(l.shape(rows), 0, bags.bags));
  return scatter_rows(l, blank, l.unsqueeze(bags.bag_of, {1}), rows, "add");
}

/// The greatest of each bag and where in the list it first is: i64[bags, width].
Values greatest_rows(Lower& l, const Bags& bags, Value sizes) {
  const Dtype own = l.dtype(bags.rows);
  const Dtype wide = own == Dtype::f64 ? own : Dtype::f32;
  const Value rows = l.unsqueeze(l.cast(bags.rows, wide), {0});
  Value member = l.compare("Equal", lattice(l, {bags.bags, 1}, {1, 0}), bags.bag_of);
  if (bags.counted != kNoValue)
    member = l.emit("And", {member, bags.counted}, {}, {Dtype::boolean, l.shape(member)});
  const Value candidates = l.where(l.unsqueeze(member, {2}), rows, least(l, wide));
  const Value empty =
      l.unsqueeze(l.compare("Equal", sizes, l.number(std::int64_t{0}, Dtype::i64)), {1});
  const Value top = l.reduce("ReduceMax", candidates, {1}, false);
  const Value first = l.emit("ArgMax", {candidates}, {{"axis", {Int(1)}}, {"keepdims", {Int(0)}}},
                             {Dtype::i64, l.shape(top)});
  const Value rows_of = l.gather(bags.indices, first, 0);
  return {l.cast(l.where(empty, l.number(0.0, wide), top), own),
          l.where(empty, l.number(std::int64_t{0}, Dtype::i64), rows_of)};
}

}  // namespace

Values embedding_bag(Lower& l) {
  const std::int64_t mode = l.call().number("mode");
  const Bags bags = bags_of(l);
  const Dtype places = l.result(1).dtype;
  // torch leaves out what its fast kernel does not need.
  const bool listed = !(l.result(1).shape[0] == Int(0));
  const Value bag_of = l.cast(listed ? bags.bag_of : l.constant_ints(Dtype::i64, {0}, {}), places);
  if (mode == kModeSum) {
    const Value none = l.filled(l.number(std::int64_t{0}, places), {bags.bags});
    return {added_up(l, bags, bags.rows), bag_of, none, none};
  }
  const Value ones = l.expand(l.number(std::int64_t{1}, Dtype::i64), l.shape(bags.bag_of));
  const Value sizes = added_up(l, bags, ones);
  if (mode == kModeMax) {
    const Values found = greatest_rows(l, bags, sizes);
    return {found[0], bag_of, l.cast(sizes, places), l.cast(found[1], places)};
  }
  const Dtype dtype = l.dtype(bags.rows);
  const Value divisor =
      l.cast(l.binary("Max", sizes, l.number(std::int64_t{1}, Dtype::i64)), dtype);
  const Value mean = l.div(added_up(l, bags, bags.rows), l.unsqueeze(divisor, {1}));
  const Value counts = l.cast(sizes, places);
  return {mean, bag_of, counts, counts};
}

}  // namespace modelport::ops::onnx
