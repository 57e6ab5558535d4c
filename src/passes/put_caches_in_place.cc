// Caches in place: attention takes a cache that has room for more, and writes the new keys and
// values into it, where the captured graph copies the cache to append to it.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ops/fusions/cached_attention.h"
#include "passes/own_mask.h"
#include "passes/position_tables.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

using ops::fusions::CachedAttention;

constexpr std::string_view kOp = "modelport.group_query_attention";
constexpr std::string_view kCacheInPlace = "attention on a cache in place";
constexpr std::string_view kOwnMask = ", in place, with the model's own mask";
constexpr std::string_view kWithoutPadding = "rows without the padding between their tokens";
constexpr std::string_view kMask = "attention_mask";
constexpr std::string_view kTotal = "total_sequence_length";
constexpr std::string_view kRoom = "cache_length";
/// Longer tables of positions are more bytes than the kernel is worth.
constexpr std::int64_t kMostPositions = 1 << 17;

/// The sizes of a program with a cache: tokens that are new, and all tokens.
struct Lengths {
  ir::ValueId mask;
  shape::Int fresh, total;
};

/// Says all sizes in terms of the mask's, which covers all tokens: from then on the length of the
/// cache has no part in anything else. Nothing where the inputs do not allow that.
std::optional<Lengths> measure_by_mask(ir::Graph& graph) {
  const auto cache = ops::fusions::first_cache(graph);
  const ir::ValueId* mask = graph.find_input(kMask);
  if (!cache || mask == nullptr) return std::nullopt;
  const std::string past(*graph.value(cache->past).tensor().shape[2].as_symbol());
  const shape::Int fresh = graph.value(cache->fresh).tensor().shape[2];
  const ir::TensorType covered = graph.value(*mask).tensor();
  if (covered.shape.size() != 2 || !fresh.as_symbol() || !is_integral(covered.dtype))
    return std::nullopt;
  const auto dim = [&](std::string_view name) {
    return *std::ranges::find(graph.dims, name, &shape::Dim::name);
  };
  shape::Int total = covered.shape[1];
  if (total == shape::Int::symbol(past) + fresh) {
    total = shape::Int::symbol(kTotal);
    const shape::Range range{1, shape::Range::kUnbounded};
    const std::int64_t hint = dim(past).hint + dim(*fresh.as_symbol()).hint;
    graph.dims.push_back({.name = std::string(kTotal),
                          .range = range,
                          .declared = range,
                          .hint = hint,
                          .lo_where = {},
                          .hi_where = {}});
  } else if (!total.as_symbol() || *total.as_symbol() == past) {
    return std::nullopt;
  }
  graph.substitute({{past, total - fresh}});
  graph.guards.push_back({.condition = shape::Bool::compare(shape::Compare::ge, total, fresh),
                          .effect = shape::Guard::Effect::kept,
                          .where = {},
                          .module_path = {}});
  return Lengths{*mask, fresh, total};
}

class InPlace {
 public:
  InPlace(ir::Graph& graph, const Lengths& lengths, FusionContext& context)
      : graph_(graph), lengths_(lengths), context_(context) {}

  /// Whether every attention on a cache can be done so; else none is. Rows are kept without the
  /// padding between their tokens where masks hide nothing else; else every column is kept, and
  /// the masks hide what they hide.
  bool find() {
    bool all = true;
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const auto found = ops::fusions::find_cached_attention(graph_, context_.known, {i});
      if (!found) continue;
      const std::string& path = graph_.place(graph_.node({i}).place).module_path;
      if (const auto* why = std::get_if<std::string>(&*found)) {
        context_.notes.push_back({std::string(kCacheInPlace), *why, path});
        all = false;
        continue;
      }
      sites_.push_back(std::get<CachedAttention>(*found));
    }
    if (all && sites_.empty())
      context_.notes.push_back(
          {std::string(kCacheInPlace), "it is written in a way of its own", ""});
    if (!all || sites_.empty()) return false;
    why_all_columns_ = why_padding_stays();
    const bool have_masks = std::ranges::all_of(sites_, [](const CachedAttention& site) {
      return site.mask != ir::ValueId{} || !site.steps.empty();
    });
    if (!leaves_padding_out() && !have_masks)
      context_.notes.push_back({std::string(kCacheInPlace), why_all_columns_, ""});
    return leaves_padding_out() || have_masks;
  }

  ir::Graph rebuilt() {
    give_room();
    Rebuild rebuild(graph_);
    PositionTables tables(graph_, rebuild, context_.context_length);
    if (leaves_padding_out()) assume_order(rebuild);
    auto site = sites_.begin();
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      if (site != sites_.end() && site->node == ir::NodeId{i}) {
        attend(*site++, rebuild, tables);
      } else {
        rebuild.copy(graph_.node({i}));
      }
    }
    ir::Graph result = std::move(rebuild).finish();
    ir::drop_dead_nodes(result);
    drop_positions(result);
    tables_ = std::move(tables).program();
    return result;
  }
  /// What computes the weights that `rebuilt` added, where it added any.
  std::optional<ir::Graph> tables() && {
    return tables_.outputs.empty() ? std::nullopt : std::optional(std::move(tables_));
  }

  /// A cache that anything else reads has to end with its last token.
  bool leaves_others(const ir::Graph& result) const {
    std::set<ir::ValueId> caches;
    for (const CachedAttention& site : sites_) {
      for (const ir::ValueId id : {site.past_key, site.past_value})
        caches.insert(*result.find_input(graph_.value(id).name));
    }
    for (const ir::Node& node : result.nodes()) {
      if (node.op == kOp) caches.insert(node.results.begin() + 1, node.results.end());
    }
    return std::ranges::any_of(result.nodes(), [&](const ir::Node& node) {
      bool reads = false;
      ir::for_each_operand(node, [&](ir::ValueId id) { reads |= caches.contains(id); });
      return reads && node.op != kOp;
    });
  }

  void note() {
    for (const CachedAttention& site : sites_) {
      const std::string& path = graph_.place(graph_.node(site.node).place).module_path;
      if (!leaves_padding_out()) {
        context_.notes.push_back({std::string(site.form).append(kOwnMask), "", path});
        context_.notes.push_back({std::string(kWithoutPadding), why_all_columns_, path});
        continue;
      }
      // Readers of the file look for the window: it counts tokens, and not the padding between
      // them.
      const std::string_view how = site.window ? ", in place, within a window" : ", in place";
      context_.notes.push_back({std::string(site.form).append(how), "", path});
      context_.notes.push_back(
          {"rotary embedding inside attention", turns_inside(site) ? "" : why_outside(site), path});
    }
  }

 private:
  /// Empty where rows can be kept without it. A state of another kind would see padding behind the
  /// tokens of a row.
  std::string why_padding_stays() const {
    std::set<ir::ValueId> caches;
    for (const CachedAttention& site : sites_) {
      if (!site.why_own_mask.empty()) return site.why_own_mask;
      if (site.padding != lengths_.mask) return "layers have masks of their own";
      caches.insert({site.past_key, site.past_value});
    }
    const auto other = [&](ir::ValueId id) {
      return graph_.value(id).name.starts_with("past") && !caches.contains(id);
    };
    if (!graph_.assumptions.empty())
      return "the model branches on its data, which padding is part of";
    return std::ranges::any_of(graph_.inputs, other) ? "there is a state beside keys and values"
                                                     : "";
  }

  /// Whether rows are kept without the padding between their tokens.
  bool leaves_padding_out() const { return why_all_columns_.empty(); }

  bool turns_inside(const CachedAttention& site) const {
    return leaves_padding_out() && site.rotary && context_.context_length > 0 &&
           context_.context_length <= kMostPositions &&
           PositionTables::can_make(graph_, *site.rotary);
  }

  std::string why_outside(const CachedAttention& site) const {
    if (!site.why_no_rotary.empty()) return site.why_no_rotary;
    if (context_.context_length <= 0) return "the config does not say how long a text may be";
    if (context_.context_length > kMostPositions)
      return fmt::format("a table of {} positions is too large", context_.context_length);
    return "its tables depend on more than positions";
  }

  void give_room() {
    const shape::Range range{0, shape::Range::kUnbounded};
    const shape::Int room = shape::Int::symbol(kRoom);
    for (const CachedAttention& site : sites_) {
      for (const ir::ValueId id : {site.past_key, site.past_value})
        std::get<ir::TensorType>(graph_.value(id).type).shape[2] = room;
    }
    std::int64_t hint = 0;
    for (shape::Dim& dim : graph_.dims) {
      const bool is_total = dim.name == lengths_.total.as_symbol();
      if (is_total) hint += dim.hint;
      if (dim.name == lengths_.fresh.as_symbol()) hint -= dim.hint;
      if (is_total && std::ranges::any_of(sites_, [&](auto& s) { return turns_inside(s); }))
        dim.range.hi = std::min(dim.range.hi, context_.context_length);
    }
    graph_.dims.push_back({.name = std::string(kRoom),
                           .range = range,
                           .declared = range,
                           .hint = hint,
                           .lo_where = {},
                           .hi_where = {}});
    graph_.guards.push_back({.condition = shape::Bool::compare(
                                 shape::Compare::ge, room + lengths_.fresh, lengths_.total),
                             .effect = shape::Guard::Effect::kept,
                             .where = {},
                             .module_path = {}});
  }

  void attend(const CachedAttention& site, Rebuild& rebuild, PositionTables& tables) const {
    const bool turns = turns_inside(site);
    const auto value = [&](ir::ValueId id) { return ir::Arg{rebuild(id)}; };
    std::vector<ir::NamedArg> args{{"query", value(turns ? site.rotary->x : site.query)},
                                   {"key", value(turns ? site.key_before_rotary : site.key)},
                                   {"value", value(site.value)},
                                   {"past_key", value(site.past_key)},
                                   {"past_value", value(site.past_value)},
                                   {"attention_mask", value(lengths_.mask)}};
    if (turns) {
      args.push_back({"cos", {tables.cos(*site.rotary)}});
      args.push_back({"sin", {tables.sin(*site.rotary)}});
    }
    if (site.sinks != ir::ValueId{}) args.push_back({"sinks", value(site.sinks)});
    if (!leaves_padding_out()) {
      args.push_back({"mask", site.steps.empty() ? value(site.mask)
                                                 : ir::Arg{own_mask(graph_, site.steps, rebuild)}});
      if (!site.why_own_mask.empty()) args.push_back({"looks_ahead", {true}});
    }
    if (site.scale) args.push_back({"scale", {*site.scale}});
    if (site.window && leaves_padding_out()) args.push_back({"window", {shape::Int(*site.window)}});
    if (site.cap) args.push_back({"cap", {*site.cap}});
    if (turns && site.rotary->interleaved) args.push_back({"interleaved", {true}});
    const ir::Node& node = graph_.node(site.node);
    ir::TensorType cache = graph_.value(site.past_key).tensor();
    cache.shape[2] = shape::max(cache.shape[2], lengths_.total);
    const ir::TensorType& wanted = graph_.value(node.results[0]).tensor();
    const ir::TensorType attended{wanted.dtype, graph_.value(site.query).tensor().shape};
    const auto results =
        rebuild.add(std::string(kOp), std::move(args), {attended, cache, cache}, node.place);
    // Models have rows and heads in one axis there, or in two.
    rebuild.replace(node.results[0], viewed(rebuild, results[0], wanted.shape, node.place));
    rebuild.replace(site.keys, results[1]);
    rebuild.replace(site.values, results[2]);
  }

  void assume_order(Rebuild& rebuild) const {
    const auto holds =
        rebuild.add("modelport.tokens_come_first",
                    {{"attention_mask", {rebuild(lengths_.mask)}}, {"tokens", {lengths_.fresh}}},
                    {ir::TensorType{Dtype::boolean, {}}}, {});
    rebuild.assume({.value = holds[0],
                    .expected = true,
                    .place = {},
                    .what = "tokens come before their padding: the cache is written in place"});
  }

  /// Positions that only rotations inside the kernel were made from.
  void drop_positions(ir::Graph& result) const {
    std::set<std::string> gone;
    for (const CachedAttention& site : sites_) {
      if (turns_inside(site)) gone.insert(graph_.value(site.rotary->positions).name);
    }
    std::set<ir::ValueId> used;
    for (const ir::Node& node : result.nodes()) {
      ir::for_each_operand(node, [&](ir::ValueId id) { used.insert(id); });
    }
    std::erase_if(result.inputs, [&](ir::ValueId id) {
      return gone.contains(result.value(id).name) && !used.contains(id);
    });
    result.keep_nodes(std::vector<bool>(result.nodes().size(), true));
  }

  ir::Graph& graph_;
  const Lengths& lengths_;
  FusionContext& context_;
  std::vector<CachedAttention> sites_;
  std::string why_all_columns_;
  ir::Graph tables_;
};

}  // namespace

void put_caches_in_place(ir::Graph& graph, FusionContext& context) {
  ir::Graph measured = graph;
  const auto lengths = measure_by_mask(measured);
  if (!lengths) {
    if (ops::fusions::first_cache(graph))
      context.notes.push_back(
          {std::string(kCacheInPlace), "no input attention_mask covers all tokens", ""});
    return;
  }
  InPlace pass(measured, *lengths, context);
  if (!pass.find()) return;
  ir::Graph result = pass.rebuilt();
  if (pass.leaves_others(result)) {
    context.notes.push_back({std::string(kCacheInPlace), "other nodes read the cache as well", ""});
    return;
  }
  pass.note();
  context.tables = std::move(pass).tables();
  graph = std::move(result);
}

}  // namespace modelport::passes
