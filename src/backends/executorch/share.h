// Tensors that can lie in memory of others. Both change which storage a tensor names.
#pragma once

#include "backends/executorch/method.h"

namespace modelport::executorch {

/// A new value of state is computed where the state lies, if nothing reads the old one afterwards;
/// else it is copied there at the end.
void write_state(Method& method);

/// The result of an elementwise kernel takes the place of an operand that is not needed any more.
void reuse_operands(Method& method);

}  // namespace modelport::executorch
