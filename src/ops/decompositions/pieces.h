// What decompositions are built from: other rows by a short name.
#pragma once

#include <string_view>
#include <vector>

#include "ops/emit/emitter.h"
#include "ops/rules/axes.h"

namespace modelport::ops::parts {

using emit::Emitter;
using emit::Operand;
using Axes = std::vector<std::int64_t>;

Value cast(Emitter& e, Value x, Dtype dtype);
Value viewed(Emitter& e, Value x, const Shape& shape);
Value expanded(Emitter& e, Value x, const Shape& shape);
Value permuted(Emitter& e, Value x, const Axes& order);
/// The last two axes exchanged.
Value transposed(Emitter& e, Value x);
Value with_axis_at(Emitter& e, Value x, std::int64_t axis);
Value sliced(Emitter& e, Value x, std::int64_t axis, const Int& start, const Int& end,
             const Int& step = 1);
Value selected(Emitter& e, Value x, std::int64_t axis, const Int& index);
/// 0, 1, ... n - 1
Value counted(Emitter& e, const Int& n, Dtype dtype = Dtype::i64);
Value filled(Emitter& e, const Shape& shape, double value, Dtype dtype);
/// Elements before and after each of the last axes, the last one first.
Value padded(Emitter& e, Value x, const Shape& pads, double value = 0);
/// Drops what negative pads cut off, and makes them zero.
Value cut_off(Emitter& e, Value x, Shape& pads);
Value sum_over(Emitter& e, Value x, const Axes& axes, bool keepdim = false);

Value add(Emitter& e, const Operand& a, const Operand& b);
Value sub(Emitter& e, const Operand& a, const Operand& b);
Value mul(Emitter& e, const Operand& a, const Operand& b);
Value div(Emitter& e, const Operand& a, const Operand& b);
Value where(Emitter& e, Value condition, const Operand& yes, const Operand& no);
Value scaled(Emitter& e, Value x, double factor);
Value compare(Emitter& e, std::string_view row, Value a, Value b);

/// torch.matmul of any two ranks.
Value product(Emitter& e, Value a, Value b);

/// A size that the decomposition counts to.
std::int64_t known(Emitter& e, const Int& size, std::string_view why);
/// Axes 0, 1, ... of a tensor.
Axes axes_in_order(std::int64_t rank);
inline std::size_t at(std::int64_t axis) { return static_cast<std::size_t>(axis); }

}  // namespace modelport::ops::parts
