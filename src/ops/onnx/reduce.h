// ONNX cells of reductions.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values all(Lower& l);  // over all axes, one, or some
Values any(Lower& l);
Values amax(Lower& l);
Values amin(Lower& l);
Values aminmax(Lower& l);
Values argmax(Lower& l);
Values argmin(Lower& l);
Values max_dim(Lower& l);
Values min_dim(Lower& l);
Values mean(Lower& l);
Values median(Lower& l);
Values nanmedian(Lower& l);
Values mode(Lower& l);
Values nansum(Lower& l);
Values prod(Lower& l);
Values sum(Lower& l);

/// The axes in `dim`, all where there is none; nothing for a tensor without axes.
std::vector<std::int64_t> reduced_axes(Lower& l);
/// `keepdim`, false for operators without it.
bool keeps_axes(Lower& l);
/// How many elements each result is made of.
Int reduced_count(Lower& l, Value x, const std::vector<std::int64_t>& axes);

/// Along axes; NaN where there is one.
Value greatest_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim);
Value least_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim);
/// NaN for no elements. Complex numbers too.
Value mean_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim);
Value sum_along(Lower& l, Value x, const std::vector<std::int64_t>& axes, bool keepdim);
/// The position of the greatest or least element along an axis, which stays with size 1.
struct Search {
  std::int64_t axis = 0;
  bool largest = true;
  bool last = false;  // of equal ones
};
Value position_of(Lower& l, Value x, const Search& search);
/// Without this axis unless `keepdim`.
Value drop_axis(Lower& l, Value x, std::int64_t axis, bool keepdim);

}  // namespace modelport::ops::onnx
