// The tables of .pte and .ptd files as bytes, with the header that says where the segments begin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/executorch/method.h"
#include "backends/executorch/writer.h"

namespace modelport::executorch {

/// A piece of the file behind the tables; its offset counts from the first one.
struct Segment {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Where the bytes of everything are. Segment 0 has the constants.
struct ProgramLayout {
  std::vector<Segment> segments;
  std::vector<std::uint64_t> constants;       // by entry, in segment 0; empty: beside
  std::vector<std::uint64_t> initial_values;  // by entry, in their segment
  std::size_t initial_segment = 0;
  std::size_t first_delegate = 0;
  std::size_t first_named = 0;
};

/// Ends where the first segment may begin. InternalError where the tables are no 2 GB small.
std::vector<std::byte> program_tables(const std::vector<Method>& methods, const ProgramData& data,
                                      const ProgramLayout& layout);
std::vector<std::byte> data_tables(const std::vector<ConstantEntry>& constants,
                                   const std::vector<Segment>& segments);

}  // namespace modelport::executorch
