// Interpolation: kernels take the size of the result and a scale for each axis.
#include "ops/executorch/resample.h"

#include <algorithm>

namespace modelport::ops::executorch {

Values upsample_with_antialias(Lower& l) {
  const Shape& sizes = l.result().shape;
  if (!std::ranges::all_of(sizes, [](const Int& size) { return size.constant().has_value(); }))
    l.refuse("the runtime's kernel takes fixed sizes only, for instance with static shapes");
  ir::ArgList size{{sizes[2]}, {sizes[3]}};
  ir::ArgList scales{{}, {}};
  if (const auto* factors = l.call().arg("scale_factors").get<ir::ArgList>()) scales = *factors;
  return l.kernel("aten::_upsample_bilinear2d_aa.out",
                  {{"self", l.arg("input").arg},
                   {"output_size", {std::move(size)}},
                   {"align_corners", l.arg("align_corners").arg},
                   {"scales_h", scales[0]},
                   {"scales_w", scales[1]}});
}

}  // namespace modelport::ops::executorch
