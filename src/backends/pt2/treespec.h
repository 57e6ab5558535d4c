// Names of the leaves of a call or a result, from the structure that torch's pytree wrote down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace modelport::pt2 {

/// Dotted paths in the order of the leaves: "past_key_values.0.key". Throws ExportError
/// (Code::bad_file) for text that is no structure.
std::vector<std::string> output_names(std::string_view treespec);
struct CallNames {
  std::vector<std::string> leaves;
  std::vector<std::string> arguments;  // top level
};
/// `positional` names the positional arguments, as far as it goes.
CallNames input_names(std::string_view treespec, const std::vector<std::string>& positional);

}  // namespace modelport::pt2
