// How many nodes a payload of XNNPACK has. What is read is checked; constants are not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace modelport::executorch::xnnpack {

/// Where the tables of a payload are; nothing where it does not say so as it should.
std::optional<std::span<const std::byte>> tables_of(std::span<const std::byte> payload);
/// Nothing where the tables are damaged.
std::optional<std::size_t> count_nodes(std::span<const std::byte> tables);

}  // namespace modelport::executorch::xnnpack
