#include "ops/xnnpack/shape.h"

#include <algorithm>

#include "ops/executorch/view.h"
#include "ops/rules/axes.h"

namespace modelport::ops::xnnpack {
namespace {

constexpr std::string_view kNotReal = "not f32 with one to six axes";
constexpr std::string_view kTwoSizes = "more than one size is known only when it runs";

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

}  // namespace

Value joined(Lower& l, Values parts, std::int64_t axis) {
  constexpr std::size_t kMost = 5;
  while (parts.size() > 1) {
    Values next;
    for (std::size_t i = 0; i < parts.size(); i += kMost) {
      const std::size_t count = std::min(kMost, parts.size() - i);
      Shape shape = l.shape(parts[i]);
      ir::ArgList inputs{{parts[i]}};
      for (std::size_t k = 1; k < count; ++k) {
        shape[at(axis)] = shape[at(axis)] + l.shape(parts[i + k])[at(axis)];
        inputs.push_back({parts[i + k]});
      }
      next.push_back(count == 1 ? parts[i]
                                : l.node("Concatenate",
                                         {{"inputs", {std::move(inputs)}}, {"axis", {Int(axis)}}},
                                         {Dtype::f32, shape}));
    }
    parts = std::move(next);
  }
  return parts[0];
}

Values cat(Lower& l) {
  if (!l.takes_result()) return l.leave(kNotReal);
  const std::int64_t rank = static_cast<std::int64_t>(l.result().shape.size());
  Values parts = l.ins("tensors");
  // A cache that nothing was put into yet is joined to the first keys.
  std::erase_if(parts, [&](Value part) {
    return std::ranges::find(l.shape(part), Int(0)) != l.shape(part).end();
  });
  if (parts.empty()) return l.leave("no tensor to join has elements");
  for (const Value part : parts) {
    if (!l.takes(part) || l.rank(part) != rank) return l.leave("a tensor to join is not f32");
  }
  return {joined(l, parts, l.axis("dim", rank))};
}

/// A product with ones: there is no node that repeats.
Values expand(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  const Shape& from = l.shape(x);
  const Shape& to = l.result().shape;
  const std::size_t lead = to.size() - from.size();
  std::vector<std::int64_t> ones;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool grows = i < lead || from[i - lead] != to[i];
    if (grows && !to[i].is_constant()) return l.leave("it repeats as often as a size says");
    ones.push_back(grows ? *to[i].constant() : 1);
    count *= ones.back();
  }
  if (count == 1) {
    const Value same = l.reshaped(x, to);
    return same == kNoValue ? l.leave(kTwoSizes) : Values{same};
  }
  if (count == 0 || count > 4096) return l.leave("it repeats thousands of times");
  const std::vector<double> values(at(count), 1.0);
  return {l.binary("Multiply", x, l.constant(Dtype::f32, ones, values))};
}

Values pad(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  const std::vector<Int> pads = l.call().ints("pad");
  const std::size_t rank = at(l.rank(x));
  std::vector<std::int64_t> before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < pads.size(); ++i) {
    const std::optional<std::int64_t> size = pads[i].constant();
    if (!size || *size < 0) return l.leave("it cuts off, or pads as much as a size says");
    (i % 2 == 0 ? before : after)[rank - 1 - i / 2] = *size;
  }
  return {l.node("StaticConstantPad",
                 {{"input", {x}},
                  {"pre_paddings", emit::int_list(before)},
                  {"post_paddings", emit::int_list(after)},
                  {"padding_value", {l.real_number("value")}}},
                 l.result())};
}

Values permute(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  return {l.transposed(x, executorch::order_of_axes(l, l.rank(x)))};
}

Values reshape(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  if (l.is_constant(x)) return l.leave("a constant has another shape for nothing");
  const Value y = l.reshaped(x, l.result().shape);
  return y == kNoValue ? l.leave(kTwoSizes) : Values{y};
}

Values select(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const std::optional<std::int64_t> size = l.shape(x)[at(axis)].constant();
  std::optional<std::int64_t> index = l.call().integer("index").constant();
  if (index && *index < 0) index = size ? std::optional(*index + *size) : std::nullopt;
  if (!index) return l.leave("it counts from an end that is known only when it runs");
  const Value y = l.reshaped(l.sliced(x, axis, *index, 1), l.result().shape);
  return y == kNoValue ? l.leave(kTwoSizes) : Values{y};
}

Values slice(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  const Int& before = l.shape(x)[at(axis)];
  const Int& after = l.result().shape[at(axis)];
  if (before == after) return {x};
  const std::int64_t step = l.call().integer("step").constant().value_or(0);
  std::optional<std::int64_t> start = l.call().optional_integer("start").value_or(0).constant();
  if (start && *start < 0)
    start = before.constant()
                ? std::optional(std::max<std::int64_t>(*start + *before.constant(), 0))
                : std::nullopt;
  if (step != 1 || !start || !after.constant() || *after.constant() == 0)
    return l.leave("its length is known only when it runs, or it has steps");
  return {l.sliced(x, axis, *start, after)};
}

Values split(Lower& l) {
  const Value x = l.tensor("self");
  if (!l.takes_result() || !l.takes(x)) return l.leave(kNotReal);
  const std::int64_t axis = l.axis("dim", l.rank(x));
  Values parts;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < l.result_count(); ++i) {
    const std::optional<std::int64_t> size = l.result(i).shape[at(axis)].constant();
    if (!size || *size == 0) return l.leave("pieces whose length is known only when it runs");
    parts.push_back(l.sliced(x, axis, start, *size));
    start += *size;
  }
  return parts;
}

}  // namespace modelport::ops::xnnpack
