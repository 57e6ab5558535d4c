#include "backends/executorch/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace modelport::executorch {
namespace {

// An expression of an axis without a bound can have one that says nothing, such as 2^63 / 4.
constexpr std::int64_t kMeaningless = std::int64_t{1} << 40;

/// Room for some times what the example had.
std::int64_t room_for(std::int64_t example) {
  const auto some = static_cast<std::uint64_t>(std::clamp<std::int64_t>(example, 4, INT32_MAX));
  return static_cast<std::int64_t>(std::bit_ceil(4 * some));
}

}  // namespace

Bounds::Bounds(const ir::Graph& graph, const GivenBounds& given) : graph_(graph) {
  for (const shape::Dim& dim : graph.dims) {
    shape::Range range = dim.range;
    const auto bound = given.find(dim.name);
    if (bound != given.end()) range.hi = std::min(range.hi, bound->second);
    if (range.hi < range.lo)
      throw ExportError({.code = Code::bad_dynamic_shapes,
                         .what = fmt::format("axis {} has at least {}, and its bound is {}",
                                             dim.name, range.lo, range.hi),
                         .ways_out = {fmt::format("dims={{\"{}\": ({}, {})}}", dim.name, range.lo,
                                                  std::max<std::int64_t>(2048, range.lo))}});
    ranges_.emplace(dim.name, range);
  }
}

std::vector<std::int64_t> Bounds::sizes(const std::vector<shape::Int>& shape, ir::PlaceId place) {
  std::vector<std::int64_t> sizes;
  for (const shape::Int& size : shape) sizes.push_back(largest(size, place));
  return sizes;
}

void Bounds::learn(const shape::Int& size, std::int64_t most) {
  const auto symbol = size.as_symbol();
  if (!symbol) return;
  const auto found = ranges_.find(*symbol);
  if (found != ranges_.end()) found->second.hi = std::min(found->second.hi, most);
}

std::int64_t Bounds::largest(const shape::Int& size, ir::PlaceId place) {
  if (const auto number = size.constant()) return *number;
  const shape::Range range = shape::bounds(size, ranges_);
  if (range.hi < kMeaningless) return std::max<std::int64_t>(range.hi, 0);
  std::set<std::string, std::less<>> symbols;
  shape::collect_symbols(size, symbols);
  for (const std::string& symbol : symbols) {
    const auto found = ranges_.find(symbol);
    if (found == ranges_.end() || found->second.hi != shape::Range::kUnbounded) continue;
    if (assume_a_bound(symbol)) return largest(size, place);
    if (reported_.contains(symbol)) return 1;
    reported_[symbol] = true;
    const ir::Place& at = graph_.place(place);
    missing_.add({.code = Code::bad_dynamic_shapes,
                  .what = fmt::format("executorch needs a bound for axis {}", symbol),
                  .where = at.where,
                  .module_path = at.module_path,
                  .ways_out = {fmt::format("dims={{\"{}\": ({}, 2048)}}", symbol,
                                           std::max<std::int64_t>(found->second.lo, 1))}});
    return 1;
  }
  if (const std::int64_t bound = assumed_for(size)) return bound;
  if (reported_.try_emplace(shape::print(size), true).second)
    missing_.add({.code = Code::bad_dynamic_shapes,
                  .what = fmt::format("executorch needs a bound for size {}", shape::print(size)),
                  .ways_out = {"give the axes in it smaller bounds: dims={\"seq\": (1, 2048)}"}});
  return 1;
}

bool Bounds::assume_a_bound(const std::string& symbol) {
  const auto is_it = [&](const shape::Dim& dim) { return dim.name == symbol && dim.from_data; };
  const auto dim = std::ranges::find_if(graph_.dims, is_it);
  if (dim == graph_.dims.end()) return false;
  const std::int64_t bound = room_for(dim->hint);
  ranges_[symbol].hi = bound;
  assumed_[symbol] = bound;
  return true;
}

/// Of a difference, say, that nothing bounds although its parts have bounds; 0 where data has no
/// part in it.
std::int64_t Bounds::assumed_for(const shape::Int& size) {
  shape::Bindings hints;
  std::set<std::string, std::less<>> from_data;
  for (const shape::Dim& dim : graph_.dims) {
    hints.emplace(dim.name, dim.hint);
    if (dim.from_data) from_data.insert(dim.name);
  }
  std::set<std::string, std::less<>> symbols;
  shape::collect_symbols(size, symbols);
  const auto is_known = [&](const std::string& symbol) { return hints.contains(symbol); };
  const auto is_data = [&](const std::string& symbol) { return from_data.contains(symbol); };
  if (!std::ranges::all_of(symbols, is_known) || std::ranges::none_of(symbols, is_data)) return 0;
  const std::int64_t bound = room_for(shape::evaluate(size, hints));
  assumed_[shape::print(size)] = bound;
  return bound;
}

}  // namespace modelport::executorch
