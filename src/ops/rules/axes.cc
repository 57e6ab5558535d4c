// Shapes with an axis changed, added or left out, and rules for results that are like an operand.
#include "ops/rules/axes.h"

namespace modelport::ops {

using shape::Bool;
using shape::Compare;

Shape with_size(Shape shape, std::int64_t axis, Int size) {
  if (!shape.empty()) shape[axis] = std::move(size);
  return shape;
}

Shape with_axis(Shape shape, std::int64_t axis, Int size) {
  shape.insert(shape.begin() + axis, std::move(size));
  return shape;
}

Shape without_axis(Shape shape, std::int64_t axis) {
  if (!shape.empty()) shape.erase(shape.begin() + axis);
  return shape;
}

Shape leading(const Shape& shape, std::int64_t count) {
  return Shape(shape.begin(), shape.begin() + count);
}

Shape from(const Shape& shape, std::int64_t axis) {
  return Shape(shape.begin() + axis, shape.end());
}

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Int& size_at(Call& call, const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  call.require(axis < rank && axis >= -rank, "an operand with too few axes");
  return shape[axis < 0 ? axis + rank : axis];
}

std::vector<const ir::TensorType*> all_tensors(Call& call, std::string_view name) {
  std::vector<const ir::TensorType*> types = call.tensors(name);
  for (const ir::TensorType* type : types) call.require(type != nullptr, "a list with a None");
  return types;
}

std::vector<std::int64_t> axis_list(Call& call, std::string_view name, std::int64_t rank) {
  std::vector<std::int64_t> axes;
  if (!call.has(name)) return axes;
  for (const Int& axis : call.ints(name)) axes.push_back(normal_axis(call, call.pin(axis), rank));
  return axes;
}

std::optional<std::int64_t> optional_axis(Call& call, std::string_view name, std::int64_t rank) {
  if (!call.has(name)) return std::nullopt;
  return axis_of(call, name, rank);
}

Int agreed(Call& call, const Int& a, const Int& b) {
  if (a == b) return a;
  call.require(call.equal(a, b), "sizes that must be the same differ");
  return b.is_constant() ? b : a;
}

Int expanded(Call& call, const Int& from, const Int& to) {
  if (from == to || from == Int(1)) return to;
  // A size that is 1 in the example run stands for itself as long as the target is 1 as well.
  if (call.hint(from) == call.hint(to)) return agreed(call, to, from);
  call.require(call.equal(from, 1), "only an axis of size 1 can be expanded");
  return to;
}

Int divided(Call& call, const Int& a, const Int& b) {
  if (const std::optional<Int> exact = shape::exact_quotient(a, b)) return *exact;
  call.require(call.equal(shape::mod(a, b), 0), "a size that does not divide");
  return shape::floor_div(call.dims().simplify(a), call.dims().simplify(b));
}

bool surely_at_least(Call& call, const Int& a, const Int& b) {
  return call.dims().decide(Bool::compare(Compare::ge, a, b)).value_or(false);
}

bool surely_equal(Call& call, const Int& a, const Int& b) {
  return a == b || call.dims().decide(Bool::compare(Compare::eq, a, b)).value_or(false);
}

Results like_self(Call& call) { return {call.tensor("self")}; }
Results like_input(Call& call) { return {call.tensor("input")}; }

}  // namespace modelport::ops
