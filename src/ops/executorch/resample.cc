// Interpolation: kernels take the size of the result and a scale for each axis.
#include "ops/executorch/resample.h"

namespace modelport::ops::executorch {

Values upsample_with_antialias(Lower& l) {
  const Shape& sizes = l.result().shape;
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
