// What the ONNX cells of views, cuts and indexing are put together from.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// Where a slice without an end ends.
inline constexpr std::int64_t kToTheEnd = INT64_MAX;

std::size_t at(std::int64_t axis);
/// All elements along one axis.
Value flat(Lower& l, Value x);
/// Axis `from` goes to place `to`, the others keep their order.
Value move_axis(Lower& l, Value x, std::int64_t from, std::int64_t to);
/// These axes first, then the others; and back.
Value axes_first(Lower& l, Value x, const std::vector<std::int64_t>& axes);
Value axes_back(Lower& l, Value x, const std::vector<std::int64_t>& axes);
/// A slice with bounds as Python has them: negative ones count from the end, those beyond the axis
/// are clamped when the program runs. `length` is what comes out.
Value cut(Lower& l, Value x, std::int64_t axis, const Int& start, const Int& end, const Int& length,
          const Int& step = 1);
/// The elements along these axes in reverse order.
Value reversed(Lower& l, Value x, const std::vector<std::int64_t>& axes);

/// Positions in memory: element [i, j, ...] is offset + i*strides[0] + j*strides[1] + ...
Value lattice(Lower& l, const Shape& counts, const Shape& strides, const Int& offset = 0);
/// Whether i + offset == j, for rows i and columns j.
Value diagonal_mask(Lower& l, const Int& rows, const Int& columns, std::int64_t offset);

/// A list of positions in a type that Gather takes.
Value positions(Lower& l, Value indices);
/// Whether no element can be negative, by how the value is made.
bool surely_not_negative(Lower& l, Value x);

/// ONNX's GatherElements, ScatterElements and ScatterND on any type. `reduction` is "none", "add",
/// "mul", "max" or "min".
Value gather_elements(Lower& l, Value x, Value indices, std::int64_t axis);
Value scatter_elements(Lower& l, Value x, Value indices, Value updates, std::int64_t axis,
                       std::string_view reduction = "none");
Value scatter_rows(Lower& l, Value x, Value indices, Value updates,
                   std::string_view reduction = "none");
/// Sorted along an axis: values and positions.
Values top(Lower& l, Value x, const Int& count, std::int64_t axis, bool largest);
/// Sums up along an axis.
Value running_sum(Lower& l, Value x, std::int64_t axis);
/// Rows of places where x is not 0: i64[rank, count].
Value places(Lower& l, Value x, const Int& count);
/// The constant border around the last axes; amounts first to last axis, all starts before all
/// ends.
Value bordered(Lower& l, Value x, const Shape& starts, const Shape& ends, Value value);

/// The least and the greatest number of a type.
Value least(Lower& l, Dtype dtype);
Value greatest(Lower& l, Dtype dtype);

}  // namespace modelport::ops::onnx
