// Fusions: what models write with many operators and one row has. Adding one is adding a row here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/fusions/pattern.h"

namespace modelport::ops::fusions {

struct Fusion {
  std::string_view name;
  std::string pattern;  // the node that is replaced is the outermost operator
  bool (*guard)(const Found& found);
  std::string_view op;  // that takes its place
  std::vector<ir::NamedArg> (*args)(const Found& found, const ir::Node& replaced);
};

/// x * rsqrt(mean(x^2) + eps) * weight -> rms_norm; the same of x - mean(x) -> layer_norm
std::span<const Fusion> norms();
/// Keys and values repeated for each group of query heads -> attention that repeats them itself
std::span<const Fusion> grouped_attention();
/// Tokens sorted by expert, multiplied in groups and put back -> a mixture of experts
std::span<const Fusion> experts();

}  // namespace modelport::ops::fusions
