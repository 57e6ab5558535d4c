#include "ops/fusions/cached_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/fusions/causal_mask.h"
#include "ops/fusions/repeated_heads.h"

namespace modelport::ops::fusions {
namespace {

std::string products() {
  return "products@aten.matmul(self=query, other=" + transposed_keys(maybe_repeated("keys")) + ")";
}

std::string divided(const std::string& scores) {
  return "aten.div.Tensor(other=divisor, self=" + scores + ")";
}

std::string scaled_scores() {
  return "{aten.mul.Tensor(other=scale, self=" + products() + ") | " + divided(products()) + " | " +
         products() + "}";
}

std::string softmax_of(const std::string& scores) {
  const std::string softmax = "aten.softmax.int(dim=-1, dtype=_, self=" + scores + ")";
  return "{" + softmax + " | aten.to.dtype(dtype=_, self=" + softmax + ")}";
}

std::string weighted_sum(const std::string& weights) {
  return "aten.matmul(self=" + weights + ", other=" + maybe_repeated("values") + ")";
}

std::string masked(const std::string& scores) {
  return "aten.add.Tensor(self=" + scores + ", other=mask)";
}

std::string capped(const std::string& scores) {
  return "aten.mul.Tensor(self=aten.tanh(self=aten.div.Tensor(self=" + scores +
         ", other=cap)), other=cap)";
}

/// The softmax over scores and one more for each head, which then goes.
std::string with_sinks(const std::string& scores) {
  const std::string column = "aten.expand(size=_, self=column@aten.reshape(shape=_, self=sinks))";
  const std::string all = "all@aten.cat(dim=-1, tensors=[" + scores + ", " + column + "])";
  const std::string shifted =
      "aten.sub.Tensor(self=" + all + ", other=aten.max.dim(self=all, dim=-1, keepdim=True))";
  return "aten.slice.Tensor(dim=3, start=0, end=-1, self=" + softmax_of(shifted) + ")";
}

std::optional<Appended> appended(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.value(id);
  if (value.origin != ir::Origin::node) return std::nullopt;
  const ir::Node& node = graph.node(value.producer);
  if (node.op != "aten.cat") return std::nullopt;
  const auto& parts = *node.find("tensors")->get<ir::ArgList>();
  const ir::Arg* dim = node.find("dim");
  const auto axis =
      dim == nullptr ? std::optional<std::int64_t>(0) : dim->get<shape::Int>()->constant();
  if (parts.size() != 2 || value.tensor().shape.size() != 4 || (axis != -2 && axis != 2))
    return std::nullopt;
  const Appended found{*parts[0].get<ir::ValueId>(), *parts[1].get<ir::ValueId>()};
  if (graph.value(found.past).origin != ir::Origin::input) return std::nullopt;
  return found;
}

class Finder {
 public:
  Finder(const ir::Graph& graph, const KnownNumbers& known, const Found& found)
      : graph_(graph), known_(known), found_(found) {}

  /// Empty where the kernel can do it.
  std::string objection(CachedAttention& site) {
    if (std::string why = heads(found_); !why.empty()) return why;
    site.query = found_.value("query");
    if (std::string why = widths(site); !why.empty()) return why;
    if (std::string why = masking(site); !why.empty()) return why;
    if (std::string why = numbers(site); !why.empty()) return why;
    rotation(site);
    return {};
  }

  /// The same where what is added to scores and hides them is on a path of its own.
  std::string objection(CachedAttention& site, const ScorePath& path) {
    for (const Found* found : {&found_, &path.product}) {
      if (std::string why = heads(*found); !why.empty()) return why;
    }
    site.query = path.product.value("query");
    site.scale = path.scale;
    if (std::string why = widths(site); !why.empty()) return why;
    if (std::string why = masking(site, path); !why.empty()) return why;
    rotation(site);
    return {};
  }

 private:
  static std::string heads(const Found& found) {
    for (const char* what : {"keys", "values"}) {
      if (found.has(std::string(what) + "_grown") && !times_repeated(found, what))
        return "heads are repeated in an order of their own";
    }
    return "";
  }

  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  std::string widths(const CachedAttention& site) const {
    const ir::TensorType& query = type(site.query);
    const auto& q = query.shape;
    const auto& k = type(site.key).shape;
    if (query.dtype != Dtype::f32 && query.dtype != Dtype::f16)
      return fmt::format("its kernel takes f32 and f16, not {}", name(query.dtype));
    if (q.size() != 4 || k.size() != 4) return "queries and keys have other axes than four";
    const auto heads = q[1].constant();
    const auto groups = k[1].constant();
    const auto width = q[3].constant();
    if (!heads || !groups || !width || *heads % *groups != 0) return "the heads are not known now";
    if (*width % 8 != 0)
      return fmt::format("heads of {} channels: its kernel takes multiples of 8", *width);
    if (!(k[3] == q[3]) || !(type(site.value).shape == k)) return "values are not as wide as keys";
    if (!(k[0] == q[0] && k[2] == q[2])) return "there are not as many new keys as queries";
    return {};
  }

  std::string masking(CachedAttention& site) const {
    if (!found_.has("mask") || !found_.is_value("mask")) return "there is no mask";
    const ir::ValueId mask = found_.value("mask");
    if (is_in_full(site, type(mask).shape)) site.mask = mask;
    site.why_own_mask = read_mask(site, mask);
    return site.mask == ir::ValueId{} ? site.why_own_mask : "";
  }

  /// One mask that is added, and nothing else, may be one that the kernel makes itself.
  std::string masking(CachedAttention& site, const ScorePath& path) const {
    if (path.steps.empty()) return "there is no mask";
    if (!is_in_full(site, path.steps.back().sizes))
      return "its masks have no row for each query and no column for each key";
    site.steps = path.steps;
    const auto has_mask = [](const ScoreStep& step) { return !step.operand.empty(); };
    const ScoreStep& first = path.steps.front();
    const ir::ValueId mask = *graph_.node(first.node).find(first.operand)->get<ir::ValueId>();
    const bool alone = std::ranges::count_if(path.steps, has_mask) == 1 && first.adds &&
                       type(mask).shape.size() == 4;
    site.why_own_mask = alone ? read_mask(site, mask) : "more than one mask is added to its scores";
    return "";
  }

  /// What it lets queries see; text where it is nothing that the kernel does itself.
  std::string read_mask(CachedAttention& site, ir::ValueId mask) const {
    const auto read = read_causal_mask(graph_, known_, mask);
    if (const auto* why = std::get_if<std::string>(&read)) {
      return *why;
    }
    if (graph_.value(std::get<CausalMask>(read).padding).origin != ir::Origin::input)
      return "the mask of padding is no input";
    site.padding = std::get<CausalMask>(read).padding;
    site.window = std::get<CausalMask>(read).window;
    return "";
  }

  /// Whether the mask has a row for each query and a column for each key.
  bool is_in_full(const CachedAttention& site, const std::vector<shape::Int>& mask) const {
    const auto& query = type(site.query).shape;
    const shape::Int one(1);
    return mask.size() == 4 && (mask[0] == one || mask[0] == query[0]) &&
           (mask[1] == one || mask[1] == query[1]) && mask[2] == query[2] &&
           mask[3] == type(site.keys).shape[2];
  }

  std::string numbers(CachedAttention& site) const {
    if (found_.has("scale") && !found_.arg("scale").is_none()) {
      site.scale = found_.number("scale");
      if (!site.scale) return "the scale of its scores is no plain number";
    } else if (found_.has("divisor")) {
      const auto divisor = found_.number("divisor");
      if (!divisor || *divisor == 0) return "the scale of its scores is no plain number";
      site.scale = 1 / *divisor;
    } else if (found_.has("products")) {
      site.scale = 1;
    }
    if (found_.has("cap")) {
      site.cap = found_.number("cap");
      if (!site.cap || !(*site.cap > 0)) return "the cap of its scores is no plain number";
    }
    if (!found_.has("sinks")) return {};
    const shape::Int heads = type(site.query).shape[1];
    site.sinks = found_.value("sinks");
    const bool plain = type(site.sinks).shape == std::vector<shape::Int>{heads} &&
                       found_.type("column").shape == std::vector<shape::Int>{1, heads, 1, 1};
    return plain ? "" : "the sinks of its heads have a shape of their own";
  }

  void rotation(CachedAttention& site) const {
    const auto of_query = read_rotary(graph_, known_, site.query);
    const auto of_key = read_rotary(graph_, known_, site.key);
    if (!of_query || !of_key) {
      site.why_no_rotary = "query and key are not turned by their positions alone";
      return;
    }
    const auto facts = [](const Rotary& r) {
      return std::tuple{r.cos, r.sin, r.step, r.pairs, r.interleaved, r.positions};
    };
    if (facts(*of_query) != facts(*of_key)) {
      site.why_no_rotary = "query and key are turned by different tables";
    } else if (of_query->pairs % 8 != 0) {
      site.why_no_rotary = fmt::format(
          "{} pairs of channels are turned: its kernel takes multiples of 8", of_query->pairs);
    } else {
      site.rotary = of_query;
      site.key_before_rotary = of_key->x;
    }
  }

  const ir::Graph& graph_;
  const KnownNumbers& known_;
  const Found& found_;
};

}  // namespace

std::span<const AttentionForm> attention_forms() {
  static const std::vector<AttentionForm> forms{
      {.name = "attention on a cache",
       .pattern = "aten.scaled_dot_product_attention(query=query, key=" + maybe_repeated("keys") +
                  ", value=" + maybe_repeated("values") +
                  ", attn_mask=mask, scale=scale, enable_gqa=_)"},
      {.name = "attention on a cache, written out",
       .pattern = weighted_sum(softmax_of(masked(scaled_scores())))},
      {.name = "attention on a cache, scaled with its mask",
       .pattern = weighted_sum(softmax_of(divided(masked(products()))))},
      {.name = "attention on a cache, with capped scores",
       .pattern = weighted_sum(softmax_of(masked(capped(scaled_scores()))))},
      {.name = "attention on a cache, with sinks",
       .pattern = weighted_sum(with_sinks(masked(scaled_scores())))},
  };
  return forms;
}

std::optional<Appended> first_cache(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.results.size() != 1) continue;
    const auto found = appended(graph, node.results[0]);
    if (found && graph.value(found->past).tensor().shape[2].as_symbol()) return found;
  }
  return std::nullopt;
}

namespace {

using Site = std::variant<CachedAttention, std::string>;

/// The site but for its query, where keys and values come from caches.
std::optional<CachedAttention> on_caches(const ir::Graph& graph, ir::ValueId keys,
                                         ir::ValueId values) {
  const auto of_keys = appended(graph, keys), of_values = appended(graph, values);
  if (!of_keys || !of_values) return std::nullopt;
  return CachedAttention{.key = of_keys->fresh,
                         .value = of_values->fresh,
                         .past_key = of_keys->past,
                         .past_value = of_values->past,
                         .keys = keys,
                         .values = values};
}

/// Where no form has it: whatever scores go through, as long as it comes down to a scale and a
/// mask that is added.
std::optional<Site> find_on_path(const ir::Graph& graph, const KnownNumbers& known, ir::NodeId id) {
  static const std::array<Pattern, 2> patterns{
      parse_pattern("aten.matmul(self=weights, other=" + maybe_repeated("values") + ")"),
      parse_pattern("aten.bmm(self=weights, mat2=" + flattened("values") + ")")};
  for (const Pattern& pattern : patterns) {
    const auto found = find(pattern, graph, graph.node(id), kUsesNotAsked);
    if (!found || !found->is_value("values") || !found->is_value("weights")) continue;
    if (!appended(graph, found->value("values"))) continue;
    const auto path = find_score_path(graph, known, found->value("weights"));
    if (!path) continue;
    auto site = on_caches(graph, path->product.value("keys"), found->value("values"));
    if (!site) continue;
    site->node = id;
    site->form = "attention on a cache, with what is added to its scores";
    if (std::string why = Finder(graph, known, *found).objection(*site, *path); !why.empty())
      return why;
    return *site;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Site> find_cached_attention(const ir::Graph& graph, const KnownNumbers& known,
                                          ir::NodeId id) {
  static const std::vector<Pattern> patterns = [] {
    std::vector<Pattern> parsed;
    for (const auto& form : attention_forms()) parsed.push_back(parse_pattern(form.pattern));
    return parsed;
  }();
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const auto found = find(patterns[i], graph, graph.node(id), kUsesNotAsked);
    if (!found || !found->is_value("keys") || !found->is_value("values")) continue;
    auto site = on_caches(graph, found->value("keys"), found->value("values"));
    if (!site) continue;
    site->node = id;
    site->form = attention_forms()[i].name;
    if (std::string why = Finder(graph, known, *found).objection(*site); !why.empty()) return why;
    return *site;
  }
  return find_on_path(graph, known, id);
}

}  // namespace modelport::ops::fusions
