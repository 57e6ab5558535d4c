// Recurrences as one loop: a Scan goes from place to place and keeps the state.
#include <limits>

#include "ops/decompositions/reduce.h"
#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/scan.h"

namespace modelport::ops::onnx {
namespace {

/// state = join(apply(state, decay), input), and where it begins.
struct Loop {
  const char* apply;
  const char* join;
  double start;
};

Values scan(Lower& l, const Loop& loop) {
  const Dtype wide = working_dtype(l.result().dtype);
  const Value decay = l.in("decay", wide);
  const Value input = l.in("input", wide);
  const std::int64_t axis = l.axis("dim", l.rank(input));
  Shape one_place = l.shape(input);
  one_place.erase(one_place.begin() + axis);
  Value state = l.in("state", wide);
  if (state == kNoValue) state = l.filled(l.number(loop.start, wide), one_place);
  // The writer makes the body from the operators that follow each other in it.
  const Values results =
      l.emit_many("Scan", {state, decay, input},
                  {{"body", {ir::ArgList{{std::string(loop.apply)}, {std::string(loop.join)}}}},
                   {"axis", {Int(axis)}}},
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
  return scan(l, {.apply = "Mul", .join = "Add", .start = 0});
}

Values maximum_recurrence(Lower& l) {
  if (is_one_place(l)) return {parts::maximum_recurrence(l)};
  return scan(l,
              {.apply = "Add", .join = "Max", .start = -std::numeric_limits<double>::infinity()});
}

}  // namespace modelport::ops::onnx
