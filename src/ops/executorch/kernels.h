// The kernels that ExecuTorch's runtime has registered, and which of them serves a row.
#pragma once

#include <string_view>

#include "ops/table/op.h"

namespace modelport::ops::executorch {

/// "aten::add.out"
bool is_registered(std::string_view kernel);

/// The kernel that a row's cell names, or where the cell says nothing the one that follows from its
/// name: `aten.NAME.OVERLOAD` is `aten::NAME.OVERLOAD_out`, else `aten::NAME.out`, else for views
/// the same of `NAME_copy`. Empty where nothing follows, or the cell says something else.
std::string_view kernel_of(const OpDef& op);

}  // namespace modelport::ops::executorch
