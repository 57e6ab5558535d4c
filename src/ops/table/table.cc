// Joins the families into one table, sorted by name, at the first use.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/table/families.h"

namespace modelport::ops {
namespace {

using Family = std::span<const OpDef> (*)();
constexpr std::array kFamilies{
    Family{unary_ops},    Family{ternary_ops},     Family{statistics_ops}, Family{random_like_ops},
    Family{scalar_ops},   Family{binary_ops},      Family{activation_ops}, Family{compare_ops},
    Family{bitwise_ops},  Family{reduce_ops},      Family{scan_ops},       Family{loss_ops},
    Family{create_ops},   Family{create_like_ops}, Family{random_ops},     Family{cast_ops},
    Family{shape_ops},    Family{indexing_ops},    Family{linear_ops},     Family{neural_ops},
    Family{spectral_ops},
};

std::vector<const OpDef*> join() {
  std::vector<const OpDef*> rows;
  for (const Family family : kFamilies) {
    for (const OpDef& op : family()) rows.push_back(&op);
  }
  std::sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->name < b->name; });
  const auto twice = std::adjacent_find(rows.begin(), rows.end(),
                                        [](auto* a, auto* b) { return a->name == b->name; });
  if (twice != rows.end()) {
    throw InternalError(fmt::format("two families have a row for {}", (*twice)->name));
  }
  return rows;
}

}  // namespace

std::span<const OpDef* const> all_ops() {
  static const std::vector<const OpDef*> rows = join();
  return rows;
}

const OpDef* find_op(std::string_view name) {
  const auto rows = all_ops();
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), name,
                       [](const OpDef* op, auto wanted) { return op->name < wanted; });
  return found != rows.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace modelport::ops
