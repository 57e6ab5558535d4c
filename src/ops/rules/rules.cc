// What the shape rules share. Sizes are compared by form and range first; only what stays open
// becomes a guard.
#include "ops/rules/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modelport::ops {
using shape::Bool;
using shape::Compare;

Int clamp_above(Call& call, const Int& x, const Int& limit) {
  const auto decided = call.dims().decide(Bool::compare(Compare::le, x, limit));
  if (decided) return *decided ? x : limit;
  const auto other = call.dims().decide(Bool::compare(Compare::ge, x, limit));
  if (other && *other) return limit;
  return shape::min(x, limit);
}

Int clamp_below(Call& call, const Int& x, const Int& limit) {
  const auto decided = call.dims().decide(Bool::compare(Compare::ge, x, limit));
  if (decided) return *decided ? x : limit;
  const auto other = call.dims().decide(Bool::compare(Compare::le, x, limit));
  if (other && *other) return limit;
  return shape::max(x, limit);
}

Int broadcast(Call& call, const Int& a, const Int& b) {
  if (a == b || b == Int(1)) return a;
  if (a == Int(1)) return b;
  const std::int64_t size_a = call.hint(a);
  const std::int64_t size_b = call.hint(b);
  if (size_a == size_b) {
    call.equal(a, b);
    return call.dims().simplify(a.is_constant() ? a : b);
  }
  if (size_a == 1 && call.equal(a, 1)) return b;
  if (size_b == 1 && call.equal(b, 1)) return a;
  call.fail(fmt::format("sizes {} and {} do not broadcast", shape::print(a), shape::print(b)));
}

Shape broadcast(Call& call, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    result[lead + i] = broadcast(call, longer[lead + i], shorter[i]);
  }
  return result;
}

Shape broadcast_args(Call& call, std::initializer_list<std::string_view> names) {
  Shape result;
  for (std::string_view name : names) {
    if (call.is_tensor(name)) result = broadcast(call, result, call.shape(name));
  }
  return result;
}

Dtype to_complex(Dtype dtype) {
  return dtype == Dtype::f64 || dtype == Dtype::c128 ? Dtype::c128 : Dtype::c64;
}

Dtype to_real(Dtype dtype) {
  if (dtype == Dtype::c64) return Dtype::f32;
  return dtype == Dtype::c128 ? Dtype::f64 : dtype;
}

Dtype to_floating(Dtype dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : Dtype::f32;
}

namespace {

Dtype promote_integers(Dtype a, Dtype b) {
  const auto is_signed = [](Dtype d) { return d >= Dtype::i64 && d <= Dtype::i8; };
  if (is_signed(a) == is_signed(b)) return byte_size(a) >= byte_size(b) ? a : b;
  const Dtype with_sign = is_signed(a) ? a : b;
  const Dtype without = is_signed(a) ? b : a;
  if (byte_size(with_sign) > byte_size(without)) return with_sign;
  switch (byte_size(without)) {
    case 1:
      return Dtype::i16;
    case 2:
      return Dtype::i32;
    default:
      return Dtype::i64;
  }
}

Dtype promote_floats(Dtype a, Dtype b) {
  if (byte_size(a) == byte_size(b)) return byte_size(a) == 2 ? Dtype::f32 : a;
  return byte_size(a) > byte_size(b) ? a : b;
}

}  // namespace

Dtype promote(Dtype a, Dtype b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    const auto wide = [](Dtype d) { return d == Dtype::c128 || d == Dtype::f64; };
    return wide(a) || wide(b) ? Dtype::c128 : Dtype::c64;
  }
  if (is_floating(a) && is_floating(b)) return promote_floats(a, b);
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (a == Dtype::boolean) return b;
  if (b == Dtype::boolean) return a;
  return promote_integers(a, b);
}

namespace {

/// Torch's combine_categories: what is lower in rank counts only if its category is higher.
std::optional<Dtype> combine(std::optional<Dtype> higher, std::optional<Dtype> lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? to_complex(*higher) : *higher;
  if (*higher == Dtype::boolean || is_floating(*lower) || is_complex(*lower)) {
    return promote(*higher, *lower);
  }
  return higher;
}

}  // namespace

Dtype promote(const Call& call, std::initializer_list<std::string_view> names) {
  // Operands with dimensions, 0-d tensors, plain numbers.
  std::array<std::optional<Dtype>, 3> ranks;
  const auto add = [&](std::size_t rank, Dtype dtype) {
    ranks[rank] = ranks[rank] ? promote(*ranks[rank], dtype) : dtype;
  };
  for (std::string_view name : names) {
    if (call.is_tensor(name)) {
      add(call.shape(name).empty() ? 1 : 0, call.dtype_of(name));
    } else if (const auto dtype = call.number_dtype(name)) {
      add(2, *dtype);
    }
  }
  return combine(ranks[0], combine(ranks[1], ranks[2])).value_or(Dtype::f32);
}

std::int64_t normal_axis(Call& call, std::int64_t axis, std::int64_t rank) {
  const std::int64_t count = std::max<std::int64_t>(rank, 1);
  if (axis < -count || axis >= count) {
    call.fail(fmt::format("axis {} is out of range for a tensor with {} axes", axis, rank));
  }
  return axis < 0 ? axis + count : axis;
}

std::int64_t axis_of(Call& call, std::string_view name, std::int64_t rank) {
  return normal_axis(call, call.number(name), rank);
}

std::vector<std::int64_t> axes_of(Call& call, std::string_view name, std::int64_t rank) {
  std::vector<std::int64_t> axes;
  if (call.has(name)) {
    for (const Int& axis : call.ints(name)) axes.push_back(normal_axis(call, call.pin(axis), rank));
  }
  if (axes.empty()) {
    for (std::int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  return axes;
}

Shape reduce(const Shape& shape, const std::vector<std::int64_t>& axes, bool keepdim) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool reduced =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keepdim) result.push_back(1);
  }
  return result;
}

Shape reduce_self(Call& call) {
  const auto axes = axes_of(call, "dim", call.rank("self"));
  return reduce(call.shape("self"), axes, call.flag("keepdim"));
}

Int numel(const Shape& shape) { return shape::product(shape); }

namespace {

/// A bound of a Python slice as a number from 0 to `size`. A constant bound may lie beyond a
/// symbolic size, so it keeps its min or max; a symbolic one (`table[:seq]`) is meant to lie
/// inside, and a guard says so.
Int slice_bound(Call& call, const Int& bound, const Int& size) {
  // The schema's default end, and what torch writes for "to the end".
  if (bound == Int(shape::Range::kUnbounded) || bound == size) return size;
  const bool fixed = bound.is_constant();
  if (call.at_least(bound, 0)) {
    if (fixed) return clamp_above(call, bound, size);
    return call.at_least(size, bound) ? bound : size;
  }
  if (fixed) return clamp_below(call, bound + size, 0);
  return call.at_least(bound + size, 0) ? bound + size : Int(0);
}

}  // namespace

Int slice_length(Call& call, const Int& size, const std::optional<Int>& start,
                 const std::optional<Int>& end, const Int& step) {
  const Int from = start ? slice_bound(call, *start, size) : Int(0);
  const Int to = end ? slice_bound(call, *end, size) : size;
  const bool last_few = start && start->is_constant() && *start->constant() < 0 && to == size;
  const Int span = last_few ? clamp_above(call, -*start, size) : clamp_below(call, to - from, 0);
  return step == Int(1) ? span : shape::ceil_div(span, step);
}

/// view(batch, -1) of a tensor whose first size is another symbol that was as long: that the two
/// are one is what the model means, and all that keeps a quotient of symbols out of every later
/// size.
static void unify_leading(Call& call, const Shape& sizes, const Shape& from) {
  for (std::size_t i = 0; i < std::min(sizes.size(), from.size()); ++i) {
    if (sizes[i] == from[i]) continue;
    const bool symbols = sizes[i].as_symbol() && from[i].as_symbol();
    if (!symbols || call.hint(sizes[i]) != call.hint(from[i])) return;
    call.equal(sizes[i], from[i]);
  }
}

Shape fill_minus_one(Call& call, const Shape& sizes, const Shape& from) {
  const Int total = numel(from);
  const auto hole = std::find(sizes.begin(), sizes.end(), Int(-1));
  Shape filled = sizes;
  const auto misfit = [&] {
    call.fail(fmt::format("{} elements do not fit the given sizes", shape::print(total)));
  };
  if (hole == sizes.end()) {
    if (!call.equal(numel(sizes), total)) misfit();
    return filled;
  }
  Int known = 1;
  for (const Int& size : sizes) {
    if (!(size == Int(-1))) known *= size;
  }
  Int& open = filled[static_cast<std::size_t>(hole - sizes.begin())];
  if (!shape::exact_quotient(total, known)) unify_leading(call, sizes, from);
  const Int all = call.dims().simplify(total);
  known = call.dims().simplify(known);
  if (const auto quotient = shape::exact_quotient(all, known)) {
    open = *quotient;
  } else {
    const std::int64_t divisor = call.hint(known);
    if (divisor == 0 || call.hint(total) % divisor != 0) misfit();
    call.equal(shape::mod(total, known), 0);
    open = shape::floor_div(total, known);
  }
  return filled;
}

Int window_size(Call& call, const Int& size, const Window& window) {
  const Int room = size + 2 * window.padding - window.dilation * (window.kernel - 1) - 1;
  if (!window.ceil_mode) return shape::floor_div(room, window.stride) + 1;
  // The last window must start inside the input or its left padding.
  const Int last_start = shape::floor_div(size + window.padding - 1, window.stride);
  return clamp_above(call, shape::ceil_div(room, window.stride), last_start) + 1;
}

}  // namespace modelport::ops
