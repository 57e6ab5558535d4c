// Tensors joined and repeated.
#include "ops/decompositions/pieces.h"
#include "ops/decompositions/shape.h"

namespace modelport::ops::parts {
namespace {

Value joined_along(Emitter& e, Values values, std::int64_t axis) {
  for (Value& x : values) x = cast(e, x, e.result().dtype);
  return e.call("aten.cat", {values, axis});
}

Values at_least(Emitter& e, const char* row) {
  Values values;
  for (const Value x : e.ins("tensors")) values.push_back(e.call(row, {x}));
  return values;
}

}  // namespace

Value block_diag(Emitter& e) {
  const Shape& result = e.result().shape;
  Values rows;
  Int before = 0;
  for (const Value x : at_least(e, "aten.atleast_2d")) {
    const Int width = e.shape(x)[1];
    rows.push_back(padded(e, cast(e, x, e.result().dtype), {before, result[1] - before - width}));
    before = before + width;
  }
  return e.call("aten.cat", {rows, 0});
}

Value cartesian_prod(Emitter& e) {
  const Values operands = e.ins("tensors");
  if (operands.size() == 1) return operands[0];
  Values columns;
  for (const Value x : e.calls("aten.meshgrid", {operands}))
    columns.push_back(viewed(e, x, {numel(e.shape(x))}));
  return e.call("aten.stack", {columns, 1});
}

Value column_stack(Emitter& e) {
  Values columns;
  for (const Value x : e.ins("tensors")) {
    const Shape shape = e.shape(x);
    columns.push_back(shape.size() < 2 ? viewed(e, x, {numel(shape), 1}) : x);
  }
  return joined_along(e, columns, 1);
}

Value concat(Emitter& e) { return e.call("aten.cat", {e.arg("tensors"), e.arg("dim")}); }
Value dstack(Emitter& e) { return joined_along(e, at_least(e, "aten.atleast_3d"), 2); }

Value hstack(Emitter& e) {
  const Values values = at_least(e, "aten.atleast_1d");
  return joined_along(e, values, e.rank(values[0]) == 1 ? 0 : 1);
}

Value vstack(Emitter& e) { return joined_along(e, at_least(e, "aten.atleast_2d"), 0); }

Values meshgrid(Emitter& e) {
  const bool is_named = schema_of(e.call().op()).find("indexing") != nullptr;
  const bool swapped = is_named && e.call().string("indexing") == "xy";
  const Values operands = e.ins("tensors");
  Values results;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t axis = swapped && i < 2 ? 1 - i : i;
    Shape shape(operands.size(), Int(1));
    shape[axis] = numel(e.shape(operands[i]));
    results.push_back(expanded(e, viewed(e, operands[i], shape), e.result().shape));
  }
  return results;
}

Value pad_sequence(Emitter& e) {
  const bool first = e.call().flag("batch_first");
  const Int length = e.result().shape[first ? 1 : 0];
  const bool left = e.call().string("padding_side") == "left";
  Values rows;
  for (const Value x : e.ins("sequences")) {
    const Int missing = length - e.shape(x)[0];
    Shape pads(at(2 * e.rank(x)), Int(0));
    pads[pads.size() - (left ? 2 : 1)] = missing;
    rows.push_back(padded(e, x, pads, e.real_number("padding_value")));
  }
  return e.call("aten.stack", {rows, first ? 0 : 1});
}

Value repeat_interleave(Emitter& e) {
  Value x = e.tensor("self");
  if (!e.has("dim")) x = viewed(e, x, {numel(e.shape(x))});
  const std::int64_t axis = e.has("dim") ? e.axis("dim", e.rank(x)) : 0;
  const Shape once = with_axis(e.shape(x), axis + 1, 1);
  const Shape often = with_axis(e.shape(x), axis + 1, e.call().integer("repeats"));
  return viewed(e, expanded(e, viewed(e, x, once), often), e.result().shape);
}

Value tile(Emitter& e) {
  Shape repeats = e.call().ints("dims");
  while (repeats.size() < e.shape(e.tensor("self")).size()) repeats.insert(repeats.begin(), 1);
  return e.call("aten.repeat", {e.arg("self"), repeats});
}

}  // namespace modelport::ops::parts
