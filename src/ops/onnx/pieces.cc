// Slices, positions, gathering and scattering on every type.
#include "ops/onnx/pieces.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "ops/rules/axes.h"

namespace modelport::ops::onnx {

std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

Value flat(Lower& l, Value x) { return l.reshape(x, {numel(l.shape(x))}); }

Value move_axis(Lower& l, Value x, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> order(l.shape(x).size());
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return l.transpose(x, order);
}

namespace {

std::vector<std::int64_t> order_of(std::int64_t rank, const std::vector<std::int64_t>& axes) {
  std::vector<std::int64_t> order = axes;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
  }
  return order;
}

}  // namespace

Value axes_first(Lower& l, Value x, const std::vector<std::int64_t>& axes) {
  return l.transpose(x, order_of(l.rank(x), axes));
}

Value axes_back(Lower& l, Value x, const std::vector<std::int64_t>& axes) {
  const std::vector<std::int64_t> order = order_of(l.rank(x), axes);
  std::vector<std::int64_t> inverse(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    inverse[at(order[i])] = static_cast<std::int64_t>(i);
  return l.transpose(x, inverse);
}

Value cut(Lower& l, Value x, std::int64_t axis, const Int& start, const Int& end, const Int& length,
          const Int& step) {
  if (is_complex(l.dtype(x)))
    return l.from_pairs(cut(l, l.as_pairs(x), axis, start, end, length, step));
  const Int& whole = l.shape(x)[at(axis)];
  const bool to_the_end = end == whole || end == Int(kToTheEnd);
  if (start == Int(0) && to_the_end && step == Int(1)) return x;
  Values inputs{x, l.size(start), l.size(to_the_end ? Int(kToTheEnd) : end), l.ints({axis})};
  if (!(step == Int(1))) inputs.push_back(l.size(step));
  return l.emit("Slice", inputs, {}, {l.dtype(x), with_size(l.shape(x), axis, length)});
}

Value reversed(Lower& l, Value x, const std::vector<std::int64_t>& axes) {
  if (axes.empty() || l.rank(x) == 0) return x;
  if (is_complex(l.dtype(x))) return l.from_pairs(reversed(l, l.as_pairs(x), axes));
  const std::vector<std::int64_t> last(axes.size(), -1);
  const std::vector<std::int64_t> before_first(axes.size(),
                                               std::numeric_limits<std::int64_t>::min());
  return l.emit("Slice", {x, l.ints(last), l.ints(before_first), l.ints(axes), l.ints(last)}, {},
                l.type(x));
}

namespace {

/// More positions than these are computed, not stored.
constexpr std::int64_t kMostStored = 1 << 14;

std::optional<std::vector<std::int64_t>> stored_lattice(const Shape& counts, const Shape& strides,
                                                        const Int& offset) {
  if (!offset.is_constant()) return std::nullopt;
  std::vector<std::int64_t> values{*offset.constant()};
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (!counts[k].is_constant() || !strides[k].is_constant()) return std::nullopt;
    const std::int64_t count = *counts[k].constant();
    if (count > kMostStored || static_cast<std::int64_t>(values.size()) * count > kMostStored)
      return std::nullopt;
    std::vector<std::int64_t> next;
    for (const std::int64_t value : values) {
      for (std::int64_t i = 0; i < count; ++i) next.push_back(value + i * *strides[k].constant());
    }
    values = std::move(next);
  }
  return values;
}

}  // namespace

Value lattice(Lower& l, const Shape& counts, const Shape& strides, const Int& offset) {
  if (counts.empty()) return l.scalar(offset);
  if (const auto values = stored_lattice(counts, strides, offset)) {
    std::vector<std::int64_t> sizes;
    for (const Int& count : counts) sizes.push_back(*count.constant());
    return l.constant_ints(Dtype::i64, sizes, *values);
  }
  Value sum = kNoValue;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    Value part = l.range(counts[k]);
    if (!(strides[k] == Int(1))) part = l.mul(part, l.size(strides[k]));
    std::vector<std::int64_t> after(counts.size() - 1 - k);
    std::iota(after.begin(), after.end(), 1);
    part = l.unsqueeze(part, after);
    sum = sum == kNoValue ? part : l.add(sum, part);
  }
  return offset == Int(0) ? sum : l.add(sum, l.size(offset));
}

Value diagonal_mask(Lower& l, const Int& rows, const Int& columns, std::int64_t offset) {
  const Value row = lattice(l, {rows, 1}, {1, 0}, offset);
  return l.compare("Equal", row, lattice(l, {columns}, {1}));
}

Value positions(Lower& l, Value indices) {
  return l.dtype(indices) == Dtype::i32 ? indices : l.cast(indices, Dtype::i64);
}

namespace {

Value input(const ir::Node& node, std::size_t index) {
  const ir::Arg* inputs = node.find("inputs");
  if (inputs == nullptr) return kNoValue;
  const auto* list = inputs->get<ir::ArgList>();
  if (list == nullptr || index >= list->size()) return kNoValue;
  const Value* value = (*list)[index].get<Value>();
  return value == nullptr ? kNoValue : *value;
}

bool not_negative(Lower& l, Value x, int depth) {
  if (x == kNoValue || depth > 8) return false;
  const ir::Value& value = l.graph().value(x);
  if (value.origin != ir::Origin::node) return false;
  const ir::Node& node = l.graph().node(value.producer);
  constexpr std::array kCounts{"onnx.Shape", "onnx.NonZero", "onnx.ArgMax", "onnx.ArgMin"};
  constexpr std::array kMoves{"onnx.Unsqueeze", "onnx.Squeeze", "onnx.Reshape",  "onnx.Expand",
                              "onnx.Transpose", "onnx.Slice",   "onnx.Identity", "onnx.Gather"};
  if (std::ranges::find(kCounts, node.op) != kCounts.end()) return true;
  if (std::ranges::find(kMoves, node.op) != kMoves.end())
    return not_negative(l, input(node, 0), depth + 1);
  if (node.op == "onnx.Cast")
    return is_integral(l.dtype(input(node, 0))) && not_negative(l, input(node, 0), depth + 1);
  if (node.op == "onnx.Add" || node.op == "onnx.Mul" || node.op == "onnx.Range") {
    // A range that starts at 0 and counts down has no elements.
    const std::size_t second = node.op == "onnx.Range" ? 2 : 1;
    return not_negative(l, input(node, 0), depth + 1) &&
           not_negative(l, input(node, second), depth + 1);
  }
  if (node.op != "onnx.Constant") return false;
  const ir::Arg* numbers = node.find("values");
  if (numbers == nullptr || numbers->get<ir::ArgList>() == nullptr) return false;
  return std::ranges::all_of(*numbers->get<ir::ArgList>(), [](const ir::Arg& arg) {
    const Int* number = arg.get<Int>();
    return number != nullptr && number->constant().value_or(-1) >= 0;
  });
}

}  // namespace

bool surely_not_negative(Lower& l, Value x) { return not_negative(l, x, 0); }

Value gather_elements(Lower& l, Value x, Value indices, std::int64_t axis) {
  if (is_complex(l.dtype(x))) {
    return l.make_complex(gather_elements(l, l.real_part(x), indices, axis),
                          gather_elements(l, l.imaginary_part(x), indices, axis));
  }
  return l.emit("GatherElements", {x, positions(l, indices)}, {{"axis", {Int(axis)}}},
                {l.dtype(x), l.shape(indices)});
}

namespace {

/// onnxruntime has reductions of scattered elements for numbers of these types.
Dtype reduced_as(Dtype dtype, std::string_view reduction) {
  if (reduction == "none" || is_complex(dtype)) return dtype;
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) return Dtype::f32;
  return is_floating(dtype) || byte_size(dtype) >= 4 ? dtype : Dtype::i32;
}

Value scatter(Lower& l, std::string_view op, const Values& inputs, const Attributes& attributes,
              std::string_view reduction) {
  const Dtype own = l.dtype(inputs[0]);
  const Dtype wide = reduced_as(own, reduction);
  Attributes all = attributes;
  if (reduction != "none") all.push_back({"reduction", {std::string(reduction)}});
  const Value x = l.cast(inputs[0], wide);
  const Values cast{x, positions(l, inputs[1]), l.cast(inputs[2], wide)};
  return l.cast(l.emit(op, cast, all, l.type(x)), own);
}

}  // namespace

Value scatter_elements(Lower& l, Value x, Value indices, Value updates, std::int64_t axis,
                       std::string_view reduction) {
  if (is_complex(l.dtype(x))) {
    if (reduction != "none" && reduction != "add") l.refuse("complex numbers are only added up");
    return l.make_complex(
        scatter_elements(l, l.real_part(x), indices, l.real_part(updates), axis, reduction),
        scatter_elements(l, l.imaginary_part(x), indices, l.imaginary_part(updates), axis,
                         reduction));
  }
  return scatter(l, "ScatterElements", {x, indices, updates}, {{"axis", {Int(axis)}}}, reduction);
}

Value scatter_rows(Lower& l, Value x, Value indices, Value updates, std::string_view reduction) {
  if (is_complex(l.dtype(x))) {
    return l.from_pairs(scatter_rows(l, l.as_pairs(x), indices, l.as_pairs(updates), reduction));
  }
  // Positions of ScatterND are always i64.
  return scatter(l, "ScatterND", {x, l.cast(indices, Dtype::i64), updates}, {}, reduction);
}

Values top(Lower& l, Value x, const Int& count, std::int64_t axis, bool largest) {
  const Dtype own = l.dtype(x);
  const Dtype wide = own == Dtype::bf16                           ? Dtype::f32
                     : own == Dtype::boolean || own == Dtype::u16 ? Dtype::i32
                     : own == Dtype::u32 || own == Dtype::u64     ? Dtype::i64
                                                                  : own;
  const Shape shape = with_size(l.shape(x), axis, count);
  const Values sorted = l.emit_many("TopK", {l.cast(x, wide), l.size(count)},
                                    {{"axis", {Int(axis)}}, {"largest", {Int(largest ? 1 : 0)}}},
                                    {{wide, shape}, {Dtype::i64, shape}});
  return {l.cast(sorted[0], own), sorted[1]};
}

Value running_sum(Lower& l, Value x, std::int64_t axis) {
  return l.emit("CumSum", {x, l.number(axis, Dtype::i64)}, {}, l.type(x));
}

Value places(Lower& l, Value x, const Int& count) {
  constexpr std::array kTested{Dtype::boolean, Dtype::f32, Dtype::i32, Dtype::i64, Dtype::u8};
  if (std::ranges::find(kTested, l.dtype(x)) == kTested.end()) x = l.cast(x, Dtype::boolean);
  return l.emit("NonZero", {x}, {}, {Dtype::i64, {l.rank(x), count}});
}

Value bordered(Lower& l, Value x, const Shape& starts, const Shape& ends, Value value) {
  if (is_complex(l.dtype(x))) {
    return l.make_complex(bordered(l, l.real_part(x), starts, ends, l.real_part(value)),
                          bordered(l, l.imaginary_part(x), starts, ends, l.imaginary_part(value)));
  }
  const Dtype own = l.dtype(x);
  if (own == Dtype::bf16 || own == Dtype::i16 || own == Dtype::u16) {
    const Dtype wide = own == Dtype::bf16 ? Dtype::f32 : Dtype::i32;
    return l.cast(bordered(l, l.cast(x, wide), starts, ends, l.cast(value, wide)), own);
  }
  Shape result = l.shape(x);
  bool none = true;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] += starts[i] + ends[i];
    none = none && starts[i] == Int(0) && ends[i] == Int(0);
  }
  if (none) return x;
  return l.emit("Pad", {x, l.sizes(joined(starts, ends)), value}, {}, {own, std::move(result)});
}

namespace {

template <typename T>
std::int64_t limit(bool upper) {
  return static_cast<std::int64_t>(upper ? std::numeric_limits<T>::max()
                                         : std::numeric_limits<T>::min());
}

Value extreme(Lower& l, Dtype dtype, bool upper) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (dtype) {
    case Dtype::i64:
      return l.number(limit<std::int64_t>(upper), dtype);
    case Dtype::i32:
      return l.number(limit<std::int32_t>(upper), dtype);
    case Dtype::i16:
      return l.number(limit<std::int16_t>(upper), dtype);
    case Dtype::i8:
      return l.number(limit<std::int8_t>(upper), dtype);
    case Dtype::u8:
      return l.number(limit<std::uint8_t>(upper), dtype);
    case Dtype::boolean:
      return l.number(std::int64_t{upper}, dtype);
    default:
      if (!is_floating(dtype)) l.refuse("numbers of this type have no order in ONNX");
      return l.number(upper ? infinity : -infinity, dtype);
  }
}

}  // namespace

Value least(Lower& l, Dtype dtype) { return extreme(l, dtype, false); }
Value greatest(Lower& l, Dtype dtype) { return extreme(l, dtype, true); }

}  // namespace modelport::ops::onnx
