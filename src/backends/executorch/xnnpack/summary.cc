#include "backends/executorch/xnnpack/summary.h"

#include <xnnpack_schema/schema_generated.h>

#include <cstring>
#include <vector>

namespace modelport::executorch::xnnpack {
namespace {

namespace fb = fb_xnnpack;

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace

std::optional<std::span<const std::byte>> tables_of(std::span<const std::byte> payload) {
  constexpr std::size_t kHeader = 30;
  if (payload.size() < kHeader || std::memcmp(payload.data() + 4, "XH00", 4) != 0)
    return std::nullopt;
  const std::size_t begin = number_at(payload, 10);
  const std::size_t length = number_at(payload, 14);
  if (begin > payload.size() || length > payload.size() - begin) return std::nullopt;
  return payload.subspan(begin, length);
}

std::optional<std::size_t> count_nodes(std::span<const std::byte> tables) {
  // In a file they may begin anywhere, and numbers in them have to be aligned.
  const std::vector<std::byte> aligned(tables.begin(), tables.end());
  const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  const auto most = static_cast<flatbuffers::uoffset_t>(aligned.size() / 8 + 1);
  flatbuffers::Verifier verifier(data, aligned.size(), 32, most);
  if (!fb::VerifyXNNGraphBuffer(verifier)) return std::nullopt;
  const auto* nodes = fb::GetXNNGraph(data)->xnodes();
  return nodes == nullptr ? 0 : nodes->size();
}

}  // namespace modelport::executorch::xnnpack
