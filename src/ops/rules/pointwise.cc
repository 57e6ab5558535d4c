// The few rules that most pointwise operators come down to.
#include "ops/rules/pointwise.h"

namespace modelport::ops {

Results floating_self(Call& call) {
  return one(to_floating(call.dtype_of("self")), call.shape("self"));
}

Results real_self(Call& call) { return one(to_real(call.dtype_of("self")), call.shape("self")); }

Results truth_of_self(Call& call) { return one(Dtype::boolean, call.shape("self")); }

Results binary(Call& call) {
  return one(promote(call, {"self", "other"}), broadcast_args(call, {"self", "other"}));
}

Results binary_floating(Call& call) {
  return one(to_floating(promote(call, {"self", "other"})),
             broadcast_args(call, {"self", "other"}));
}

Results compare(Call& call) { return one(Dtype::boolean, broadcast_args(call, {"self", "other"})); }

}  // namespace modelport::ops
