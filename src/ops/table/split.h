// Splitting schema and sample text at marks that stand outside brackets and quotes.
#pragma once

#include <string_view>
#include <vector>

namespace modelport::ops {

std::string_view trim(std::string_view text);
/// Where `wanted` first stands outside brackets and quotes; npos if it does not.
std::size_t find_outside(std::string_view text, std::string_view wanted);
/// The parts between the marks, trimmed; none for empty text.
std::vector<std::string_view> split_outside(std::string_view text, std::string_view mark);

}  // namespace modelport::ops
