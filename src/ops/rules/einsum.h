// The shape of torch.einsum's result: labels, ellipses, repeated and broadcast axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/rules/rules.h"

namespace modelport::ops {

/// The equation taken apart: a label for each axis of each operand and of the result. The axes that
/// "..." stands for have labels of their own, which are no letters.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};
Equation read_equation(Call& call, std::string_view equation, const std::vector<Shape>& shapes);

Shape einsum_shape(Call& call, std::string_view equation, const std::vector<Shape>& shapes);

}  // namespace modelport::ops
