// Paths in commands that a message gives to type.
#pragma once

#include <string>
#include <string_view>

namespace modelport {

/// One word of a command line, whatever is in it.
std::string shell_quote(std::string_view word);

}  // namespace modelport
