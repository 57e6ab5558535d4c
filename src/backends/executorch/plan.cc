#include "backends/executorch/plan.h"

#include <algorithm>
#include <array>
#include <functional>

#include "backends/executorch/layout.h"
#include "backends/executorch/lifetimes.h"
#include "backends/executorch/share.h"

namespace modelport::executorch {
namespace {

// XNNPACK reads whole vectors, up to this far behind the last element.
constexpr std::uint64_t kDelegateMargin = 64;

struct Block {
  std::size_t storage = 0;
  std::uint64_t bytes = 0;  // aligned
  Lifetime needed;
  std::uint64_t offset = 0;
};

std::vector<Block> blocks_of(const Method& method) {
  std::vector<Block> blocks;
  const std::vector<Lifetime> needed = lifetimes(method);
  for (std::size_t i = 0; i < method.storages.size(); ++i) {
    const Storage& storage = method.storages[i];
    if (storage.kind != Storage::Kind::activation || needed[i].begin == SIZE_MAX) continue;
    blocks.push_back({i, aligned(storage.bytes, kTensorAlignment), needed[i]});
  }
  return blocks;
}

/// The smallest hole that the block fits in, between those that are needed at the same time.
/// `placed` is sorted by offset.
std::uint64_t best_fit(const Block& block, const std::vector<Block>& placed) {
  std::uint64_t end = 0;  // of what was seen so far
  std::uint64_t best = 0;
  std::uint64_t best_hole = UINT64_MAX;
  for (const Block& other : placed) {
    if (!other.needed.overlaps(block.needed)) continue;
    if (other.offset > end) {
      const std::uint64_t hole = other.offset - end;
      if (hole >= block.bytes && hole < best_hole) {
        best = end;
        best_hole = hole;
      }
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best_hole == UINT64_MAX ? end : best;
}

/// Gives the blocks their offsets, in the order they come; the bytes that they take.
std::uint64_t place(std::vector<Block>& blocks) {
  std::vector<Block> placed;
  placed.reserve(blocks.size());
  std::uint64_t bytes = 0;
  for (Block& block : blocks) {
    block.offset = best_fit(block, placed);
    bytes = std::max(bytes, block.offset + block.bytes);
    const auto behind = std::ranges::upper_bound(placed, block.offset, {}, &Block::offset);
    placed.insert(behind, block);
  }
  return bytes;
}

using Before = bool (*)(const Block&, const Block&);

std::size_t duration(const Block& block) { return block.needed.end - block.needed.begin; }

// No order is best for every graph, and each takes milliseconds.
constexpr std::array<Before, 3> kOrders{
    [](const Block& a, const Block& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : duration(a) > duration(b);
    },
    [](const Block& a, const Block& b) {
      return a.bytes * (duration(a) + 1) > b.bytes * (duration(b) + 1);
    },
    [](const Block& a, const Block& b) {
      return a.needed.begin != b.needed.begin ? a.needed.begin < b.needed.begin
                                              : duration(a) > duration(b);
    }};

}  // namespace

std::uint64_t least_arena_bytes(const Method& method) {
  // What begins and what has ended, summed up step by step.
  std::vector<std::int64_t> change(method.instructions.size() + 3, 0);
  for (const Block& block : blocks_of(method)) {
    change[block.needed.begin] += static_cast<std::int64_t>(block.bytes);
    change[block.needed.end + 1] -= static_cast<std::int64_t>(block.bytes);
  }
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const std::int64_t step : change) {
    now += step;
    most = std::max(most, now);
  }
  return static_cast<std::uint64_t>(most);
}

void plan(Method& method) {
  write_state(method);
  reuse_operands(method);
  const std::uint64_t least = least_arena_bytes(method);
  const std::vector<Block> blocks = blocks_of(method);
  std::uint64_t bytes = UINT64_MAX;
  for (const Before before : kOrders) {
    std::vector<Block> tried = blocks;
    std::ranges::stable_sort(tried, before);
    const std::uint64_t needed = place(tried);
    if (needed >= bytes) continue;
    bytes = needed;
    for (const Block& block : tried) method.storages[block.storage].offset = block.offset;
    if (bytes == least) break;
  }
  method.arena_bytes = bytes + (method.delegates.empty() ? 0 : kDelegateMargin);
}

}  // namespace modelport::executorch
