// Pieces that the shape rules of many operators share: broadcasting, type promotion, axes,
// reductions, windows.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/table/call.h"

namespace modelport::ops {

/// Broadcasts two sizes: 1 gives way, otherwise they are settled to be equal. A symbol whose value
/// in the example run is 1 is only taken for 1 if the other one is not.
Int broadcast(Call& call, const Int& a, const Int& b);
Shape broadcast(Call& call, const Shape& a, const Shape& b);
/// The shape that these operands (tensors, or numbers in their place) broadcast to.
Shape broadcast_args(Call& call, std::initializer_list<std::string_view> names);

/// The common type of operands by torch's rules: tensors with dimensions before 0-d tensors before
/// plain numbers, within a category.
Dtype promote(const Call& call, std::initializer_list<std::string_view> names);
Dtype promote(Dtype a, Dtype b);
/// Integers and bools become the default float (f32); for sin, exp, true division, mean ...
Dtype to_floating(Dtype dtype);
Dtype to_complex(Dtype dtype);
/// The type of a complex number's parts; others stay as they are.
Dtype to_real(Dtype dtype);

/// A non-negative axis for a tensor of this rank; fails with a message where it is out of range.
/// 0-d tensors have axis 0.
std::int64_t axis_of(Call& call, std::string_view name, std::int64_t rank);
std::int64_t normal_axis(Call& call, std::int64_t axis, std::int64_t rank);
/// Axes of a reduction: None or empty is all of them.
std::vector<std::int64_t> axes_of(Call& call, std::string_view name, std::int64_t rank);
Shape reduce(const Shape& shape, const std::vector<std::int64_t>& axes, bool keepdim);
/// `self` reduced over the axes in `dim`, as `keepdim` says.
Shape reduce_self(Call& call);

Int numel(const Shape& shape);
/// min(x, limit) and max(x, limit), without the min or max where ranges decide it.
Int clamp_above(Call& call, const Int& x, const Int& limit);
Int clamp_below(Call& call, const Int& x, const Int& limit);
/// Python slice semantics on a symbolic size: the number of elements of [start:end:step].
Int slice_length(Call& call, const Int& size, const std::optional<Int>& start,
                 const std::optional<Int>& end, const Int& step);
/// A size list with one -1 filled in, so that it has as many elements as `from`.
Shape fill_minus_one(Call& call, const Shape& sizes, const Shape& from);

struct Window {
  Int kernel, stride = 1, padding = 0, dilation = 1;
  bool ceil_mode = false;
};
/// The size of a convolution's or a pool's output along one axis.
Int window_size(Call& call, const Int& size, const Window& window);

/// A result of one tensor, to end a rule with.
inline Results one(Dtype dtype, Shape shape) { return {ir::TensorType{dtype, std::move(shape)}}; }

}  // namespace modelport::ops
