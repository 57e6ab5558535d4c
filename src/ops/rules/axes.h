// Shapes with an axis changed, added or left out, and rules for results that are like an operand.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ops/rules/rules.h"

namespace modelport::ops {

Shape with_size(Shape shape, std::int64_t axis, Int size);
Shape with_axis(Shape shape, std::int64_t axis, Int size);  // a new axis, before `axis`
Shape without_axis(Shape shape, std::int64_t axis);
/// The first `count` axes, and the rest of them.
Shape leading(const Shape& shape, std::int64_t count);
Shape from(const Shape& shape, std::int64_t axis);
Shape joined(Shape a, const Shape& b);

/// A size that must be there, counted from the end where the axis is negative; fails otherwise.
const Int& size_at(Call& call, const Shape& shape, std::int64_t axis);
/// A list argument without a None in it.
std::vector<const ir::TensorType*> all_tensors(Call& call, std::string_view name);

/// Axes as the argument lists them, made non-negative; an absent list is empty.
std::vector<std::int64_t> axis_list(Call& call, std::string_view name, std::int64_t rank);
/// The axis, or nothing where the argument is None.
std::optional<std::int64_t> optional_axis(Call& call, std::string_view name, std::int64_t rank);

/// Two sizes that torch demands to be the same: settles that and gives the plainer one.
Int agreed(Call& call, const Int& a, const Int& b);
/// Broadcasts and settles, like torch's expand: only `from` may give way.
Int expanded(Call& call, const Int& from, const Int& to);
/// a / b where torch demands that it leaves no rest.
Int divided(Call& call, const Int& a, const Int& b);
/// Whether a >= b is known without a guard.
bool surely_at_least(Call& call, const Int& a, const Int& b);
/// Whether a == b is known without a guard.
bool surely_equal(Call& call, const Int& a, const Int& b);

/// Rules: the result has the type of this operand.
Results like_self(Call& call);
Results like_input(Call& call);

}  // namespace modelport::ops
