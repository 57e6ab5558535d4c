// Arguments of convolutions and pools, one value for each spatial axis.
#include "ops/rules/windows.h"

#include <algorithm>

namespace modelport::ops {

std::vector<Int> per_axis(Call& call, std::string_view name, std::size_t count,
                          const std::vector<Int>& otherwise) {
  std::vector<Int> values = call.has(name) ? call.ints(name) : std::vector<Int>{};
  if (values.empty()) values = otherwise;
  if (values.size() == 1) values.resize(count, values.front());
  call.require(values.size() == count, "a value for each spatial axis");
  return values;
}

std::size_t spatial_axes(Call& call) {
  const std::string_view name = call.op().name;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    if (name[i] >= '1' && name[i] <= '3' && name[i + 1] == 'd') return name[i] - '0';
  }
  throw InternalError("an operator without a number of axes in its name");
}

Shape with_last(Shape shape, const std::vector<Int>& sizes) {
  std::copy(sizes.begin(), sizes.end(), shape.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  return shape;
}

}  // namespace modelport::ops
