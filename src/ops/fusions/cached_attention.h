// Attention of new tokens on a cache of keys and values, as models write it. Adding a way of
// writing it is adding a row to `attention_forms`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "ops/fusions/pattern.h"
#include "ops/fusions/rotary.h"
#include "ops/fusions/score_path.h"

namespace modelport::ops::fusions {

struct AttentionForm {
  std::string_view name;
  /// With the names `query`, `keys`, `values` and `mask`; heads may be repeated. `scale` or its
  /// inverse, `divisor`, where there is one, and `products` where without one it is 1. `cap` where
  /// scores go through cap * tanh(scores / cap), `sinks` where each head has a score that no key
  /// belongs to.
  std::string pattern;
};
std::span<const AttentionForm> attention_forms();

/// One attention that kernels for caches in place can do.
struct CachedAttention {
  ir::NodeId node = {};
  std::string_view form = {};
  ir::ValueId query = {}, key = {}, value = {};  // [batch, heads, tokens, width]: of new tokens
  ir::ValueId past_key = {}, past_value = {};    // inputs
  ir::ValueId keys = {}, values = {};            // the cache with the new ones appended
  /// [batch or 1, heads or 1, tokens, all tokens]; nothing where it is smaller than that.
  ir::ValueId mask = {};
  /// In place of that mask: what makes one of zeros.
  std::vector<ScoreStep> steps = {};
  ir::ValueId padding = {};       // what alone hides keys before a query's own: [batch, all tokens]
  std::string why_own_mask = {};  // why there is no such `padding`, and the mask has to do it
  std::optional<std::int64_t> window = {};
  std::optional<double> scale = {};
  std::optional<double> cap = {};
  ir::ValueId sinks = {};             // [heads], or nothing
  std::optional<Rotary> rotary = {};  // of query and key alike, whose `x` is the query's
  ir::ValueId key_before_rotary = {};
  std::string why_no_rotary = {};  // why the rotation of query and key is not part of it
};

/// An input, and the tokens that are appended to it along the axis before the last.
struct Appended {
  ir::ValueId past, fresh;
};
/// The first cache of the graph whose length is free.
std::optional<Appended> first_cache(const ir::Graph& graph);

/// Nothing where the node is no attention on a cache; text: why the kernel cannot do it.
std::optional<std::variant<CachedAttention, std::string>> find_cached_attention(
    const ir::Graph& graph, const KnownNumbers& known, ir::NodeId node);

}  // namespace modelport::ops::fusions
