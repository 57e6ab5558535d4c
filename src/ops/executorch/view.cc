// Values are immutable and contiguous here: a reshape is the same memory under another shape.
#include "ops/executorch/view.h"

#include <algorithm>

#include "ops/rules/axes.h"

namespace modelport::ops::executorch {
namespace {

Values view_in(Lower& l, Value x, const Shape& shape) {
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  if (l.shape(x) == shape) return {x};
  ir::ArgList size;
  for (const Int& one : shape) size.push_back({one});
  return l.node("et.view", {{"self", {x}}, {"size", {std::move(size)}}}, {l.dtype(x), shape});
}

/// A shape without its axes of one element.
Shape without_ones(const Shape& shape) {
  Shape rest;
  std::ranges::copy_if(shape, std::back_inserter(rest),
                       [](const Int& size) { return size != Int(1); });
  return rest;
}

}  // namespace

std::vector<std::int64_t> order_of_axes(Lower& l, std::int64_t rank) {
  Call& call = l.call();
  if (schema_of(call.op()).find("dims") != nullptr) return axis_list(call, "dims", rank);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (rank < 2) return order;
  const bool named = schema_of(call.op()).find("dim0") != nullptr;
  const std::int64_t first = named ? l.axis("dim0", rank) : 0;
  const std::int64_t second = named ? l.axis("dim1", rank) : 1;
  std::swap(order[static_cast<std::size_t>(first)], order[static_cast<std::size_t>(second)]);
  return order;
}

Values same(Lower& l) { return view_in(l, l.tensor("self"), l.result().shape); }

Values view(Lower& l) { return view_in(l, l.tensor("self"), l.result().shape); }

Values expand(Lower& l) {
  const Value x = l.tensor("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  if (without_ones(l.shape(x)) == without_ones(l.result().shape))
    return view_in(l, x, l.result().shape);
  ir::ArgList size;
  for (const Int& one : l.result().shape) size.push_back({one});
  return l.kernel("aten::expand_copy.out",
                  {{"self", {x}}, {"size", {std::move(size)}}, {"implicit", {false}}});
}

Values permute(Lower& l) {
  const Value x = l.tensor("self");
  const std::vector<std::int64_t> order = order_of_axes(l, l.rank(x));
  std::vector<std::int64_t> moving;
  for (const std::int64_t axis : order) {
    if (l.shape(x)[static_cast<std::size_t>(axis)] != Int(1)) moving.push_back(axis);
  }
  if (std::ranges::is_sorted(moving)) return view_in(l, x, l.result().shape);
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  return l.kernel("aten::permute_copy.out", {{"self", {x}}, {"dims", emit::int_list(order)}});
}

}  // namespace modelport::ops::executorch
