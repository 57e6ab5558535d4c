// ExecuTorch cells of casts, of truths read out of tensors, and of kernels that need a guard.
#pragma once

#include "ops/executorch/lower.h"

namespace modelport::ops::executorch {

Values cast(Lower& l);

Values allclose(Lower& l);
Values equal(Lower& l);
Values is_nonzero(Lower& l);

Values cumsum(Lower& l);
Values fmod_scalar(Lower& l);
Values fmod_tensor(Lower& l);
Values pow_by_number(Lower& l);
Values pow_of_number(Lower& l);
Values pow_of_tensors(Lower& l);
Values rand(Lower& l);
Values remainder_scalar(Lower& l);
Values remainder_tensor(Lower& l);
Values shift_left(Lower& l);
Values shift_right(Lower& l);
Values sum(Lower& l);

}  // namespace modelport::ops::executorch
