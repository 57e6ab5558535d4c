// The shape of torch.einsum's result: labels, ellipses, repeated and broadcast axes.
#pragma once

#include <string_view>
#include <vector>

#include "ops/rules.h"

namespace modelport::ops {

Shape einsum_shape(Call& call, std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace modelport::ops
