// Numbers of the file format that have no place in its schema.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weights/sink.h"

namespace modelport::executorch {

inline constexpr std::uint64_t kTensorAlignment = 16;
inline constexpr std::uint64_t kSegmentAlignment = 128;
/// Memory ids of a method; 0 is none.
inline constexpr std::uint32_t kActivations = 1;
inline constexpr std::uint32_t kState = 2;
/// Behind the identifier of the flatbuffer: magic, length, and where program and segments are.
inline constexpr std::uint32_t kHeaderBytes = 32;
inline constexpr std::uint32_t kDataHeaderBytes = 40;

constexpr std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

inline void write_zeros(weights::Sink& sink, std::uint64_t count) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  for (; count > kZeros.size(); count -= kZeros.size()) sink.write(kZeros);
  sink.write(std::span(kZeros).first(count));
}

inline void pad_to(weights::Sink& sink, std::uint64_t position) {
  write_zeros(sink, position - sink.written());
}

}  // namespace modelport::executorch
