// ONNX cells of borders, patches of images, triangles and diagonals.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values constant_pad(Lower& l);
Values pad(Lower& l);
Values reflection_pad(Lower& l);
Values replication_pad(Lower& l);
Values circular_pad(Lower& l);
Values pixel_shuffle(Lower& l);
Values pixel_unshuffle(Lower& l);
Values im2col(Lower& l);
Values col2im(Lower& l);
Values tril(Lower& l);
Values triu(Lower& l);
Values diag_embed(Lower& l);
Values diagflat(Lower& l);

}  // namespace modelport::ops::onnx
