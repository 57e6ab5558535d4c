// Memory formats by the names that the graph uses.
#pragma once

#include <c10/core/MemoryFormat.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace modelport::capture {

inline constexpr std::array<std::pair<at::MemoryFormat, std::string_view>, 4> kMemoryFormats{{
    {at::MemoryFormat::Contiguous, "contiguous_format"},
    {at::MemoryFormat::Preserve, "preserve_format"},
    {at::MemoryFormat::ChannelsLast, "channels_last"},
    {at::MemoryFormat::ChannelsLast3d, "channels_last_3d"},
}};

inline std::string_view name(at::MemoryFormat format) {
  for (const auto& [value, text] : kMemoryFormats) {
    if (value == format) return text;
  }
  throw InternalError("an unknown memory format");
}

inline at::MemoryFormat parse_memory_format(std::string_view text) {
  for (const auto& [value, name] : kMemoryFormats) {
    if (name == text) return value;
  }
  throw ExportError(
      Diagnostic{.code = Code::bad_graph, .what = "no memory format " + std::string(text)});
}

}  // namespace modelport::capture
