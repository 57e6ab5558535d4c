// Which operators may give a result that shares memory with their first operand.
#pragma once

#include <string_view>

namespace modelport::pt2 {

/// "aten.view", "aten.slice.Tensor", ...
bool may_share_memory(std::string_view op);
/// "aten.add_.Tensor" writes to its first operand.
bool writes_in_place(std::string_view op);
/// "add" of "aten.add.Tensor".
std::string_view base_name(std::string_view op);

}  // namespace modelport::pt2
