// The rule of the arange overloads.
#pragma once

#include "ops/rules/rules.h"

namespace modelport::ops {

Results arange(Call& call);

}  // namespace modelport::ops
