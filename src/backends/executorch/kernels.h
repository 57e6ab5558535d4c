// What has to be known of single kernels of the runtime beyond their names. They are facts of its
// implementation, which no schema has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace modelport::executorch {

/// "et.aten.add.out" is the kernel aten::add.out; nothing for nodes that are no kernels.
std::optional<std::string> kernel_name(std::string_view op);

/// Whether an element of the result follows from the elements at the same position alone, so that
/// the result may take the place of an operand of the same type and shape.
bool is_elementwise(std::string_view kernel);
/// Whether the results are one list of tensors (`Tensor[] out`), not an operand each.
bool gives_list(std::string_view kernel);
/// The operand that the kernel writes to; its result is that tensor.
std::optional<std::size_t> written_operand(std::string_view kernel);
/// Whether it wants an `out` besides the operand that it writes to, and leaves it alone.
bool has_idle_out(std::string_view kernel);
/// Whether the first result has at most as many rows as the first operand has elements.
bool selects_elements(std::string_view kernel);

}  // namespace modelport::executorch
