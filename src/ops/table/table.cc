// Joins the families into one table, sorted by name, at the first use.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/table/families.h"

namespace modelport::ops {
namespace {

struct Family {
  std::span<const OpDef> (*rows)();
  Layout layout = Layout::unknown;  // of results, where rows say nothing
};
constexpr std::array kFamilies{
    Family{unary_ops, Layout::like_operands},
    Family{special_ops, Layout::like_operands},
    Family{ternary_ops, Layout::like_operands},
    Family{statistics_ops},
    Family{random_like_ops},
    Family{scalar_ops},
    Family{binary_ops, Layout::like_operands},
    Family{activation_ops},
    Family{compare_ops, Layout::like_operands},
    Family{bitwise_ops, Layout::like_operands},
    Family{reduce_ops, Layout::dense_for_dense},
    Family{scan_ops, Layout::dense_for_dense},
    Family{loss_ops},
    Family{create_ops},
    Family{create_like_ops},
    Family{random_ops},
    Family{cast_ops},
    Family{shape_ops},
    Family{indexing_ops},
    Family{linear_ops},
    Family{neural_ops},
    Family{spectral_ops},
};

std::vector<const OpDef*> join() {
  std::vector<const OpDef*> rows;
  for (const Family& family : kFamilies) {
    for (const OpDef& op : family.rows()) rows.push_back(&op);
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

Layout layout_of(const OpDef& op) {
  if (op.layout != Layout::unknown) return op.layout;
  for (const Family& family : kFamilies) {
    const std::span<const OpDef> rows = family.rows();
    if (&op >= rows.data() && &op < rows.data() + rows.size()) return family.layout;
  }
  return Layout::unknown;
}

const OpDef* find_op(std::string_view name) {
  const auto rows = all_ops();
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), name,
                       [](const OpDef* op, auto wanted) { return op->name < wanted; });
  return found != rows.end() && (*found)->name == name ? *found : nullptr;
}

}  // namespace modelport::ops
