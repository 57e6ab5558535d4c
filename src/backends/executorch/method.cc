#include "backends/executorch/method.h"

#include <algorithm>

namespace modelport::executorch {

bool Tensor::is_dynamic() const {
  return std::ranges::any_of(shape, [](const shape::Int& size) { return !size.is_constant(); });
}

Index Method::add_value(MethodValue value) {
  values.push_back(std::move(value));
  return static_cast<Index>(values.size() - 1);
}

void Method::call(std::string_view kernel, std::vector<Index> args, std::vector<Index> results) {
  auto found = std::ranges::find(operators, kernel);
  if (found == operators.end()) found = operators.emplace(operators.end(), kernel);
  instructions.push_back({.kind = Instruction::Kind::kernel,
                          .callee = static_cast<std::size_t>(found - operators.begin()),
                          .args = std::move(args),
                          .results = std::move(results)});
}

}  // namespace modelport::executorch
