// Recurrences as one loop: a Scan goes from place to place and keeps the state.
#include <limits>
#include <string>
#include <vector>

#include "ops/decompositions/reduce.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/scan.h"

namespace modelport::ops::onnx {
namespace {

/// How the state goes on, of `state`, the decay (`slice_0`) and the input (`slice_1`), in lines of
/// a body (backends/onnx/inner_graph.h); and where it begins.
struct Loop {
  std::vector<std::string> body;
  double start;
};

/// The last state, and what was kept at each place of the axis.
Values emit_scan(Lower& l, const Values& inputs, const std::vector<std::string>& body,
                 std::int64_t axis, const std::vector<ir::TensorType>& results) {
  return l.emit_many("Scan", inputs,
                     {{"body", {ir::ArgList(body.begin(), body.end())}}, {"axis", {Int(axis)}}},
                     results);
}

Values scan(Lower& l, const Loop& loop) {
  const Dtype wide = working_dtype(l.result().dtype);
  const Value decay = l.in("decay", wide);
  const Value input = l.in("input", wide);
  const std::int64_t axis = l.axis("dim", l.rank(input));
  Shape one_place = l.shape(input);
  one_place.erase(one_place.begin() + axis);
  Value state = l.in("state", wide);
  if (state == kNoValue) state = l.filled(l.number(loop.start, wide), one_place);
  const Values results = emit_scan(l, {state, decay, input}, loop.body, axis,
                                   {{wide, one_place}, {wide, l.shape(input)}});
  return {l.cast(results[1], l.result().dtype)};
}

bool is_one_place(Lower& l) {
  const Shape& shape = l.call().shape("input");
  return shape[at(l.axis("dim", l.call().rank("input")))].constant() == 1;
}

}  // namespace

Values linear_recurrence(Lower& l) {
  if (is_one_place(l)) return {parts::linear_recurrence(l)};
  return scan(l,
              {.body = {"faded = Mul(state, slice_0)", "next = Add(faded, slice_1)"}, .start = 0});
}

Values maximum_recurrence(Lower& l) {
  if (is_one_place(l)) return {parts::maximum_recurrence(l)};
  return scan(l, {.body = {"faded = Add(state, slice_0)", "next = Max(faded, slice_1)"},
                  .start = -std::numeric_limits<double>::infinity()});
}

/// Token by token: the state fades, as a whole or each row by itself, learns what a key lacks of
/// its value, and is asked.
Values gated_delta_rule(Lower& l) {
  const Value decay = l.in("decay");
  const std::vector<std::int64_t> added =
      l.rank(decay) == 3 ? std::vector<std::int64_t>{3, 4} : std::vector<std::int64_t>{4};
  const Value value = l.in("value");
  const Value key = l.in("key");
  const Value learned = l.mul(key, l.unsqueeze(l.in("beta"), {3}));
  const Shape shape = l.shape(value);
  const Values results = emit_scan(
      l,
      {l.in("initial_state"), l.unsqueeze(decay, added), l.unsqueeze(key, {3}),
       l.unsqueeze(value, {3}), l.unsqueeze(learned, {4}), l.unsqueeze(l.in("query"), {3})},
      {"faded = Mul(state, slice_0)", "known = MatMul(slice_1, faded)",
       "lacking = Sub(slice_2, known)", "change = MatMul(slice_3, lacking)",
       "next = Add(faded, change)", "kept = MatMul(slice_4, next)"},
      2, {l.result(1), {l.dtype(value), {shape[0], shape[1], shape[2], 1, shape[3]}}});
  return {l.squeeze(results[1], {3}), results[0]};
}

}  // namespace modelport::ops::onnx
