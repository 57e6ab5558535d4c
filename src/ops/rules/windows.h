// Arguments of convolutions and pools, one value for each spatial axis.
#pragma once

#include <string_view>
#include <vector>

#include "ops/rules/axes.h"

namespace modelport::ops {

/// A list argument with a value for each of `count` axes; a list of one is meant for all of them,
/// an absent or empty one is `otherwise`.
std::vector<Int> per_axis(Call& call, std::string_view name, std::size_t count,
                          const std::vector<Int>& otherwise = {});

/// The number in an operator's name: 2 for aten.max_pool2d_with_indices.
std::size_t spatial_axes(Call& call);

/// A shape with its last axes replaced.
Shape with_last(Shape shape, const std::vector<Int>& sizes);

}  // namespace modelport::ops
