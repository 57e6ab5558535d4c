// Models with fewer key heads than query heads repeat keys and values before they attend. Attention
// operators do that themselves, without the copy.
#include "passes/fuse.h"
#include "passes/match.h"

namespace modelport::passes {
namespace {

struct Repeated {
  ir::ValueId heads;  // [batch, heads, length, size]
  shape::Int times;
};

/// The node that made what an argument is, or is all of: models write `x[:, :, None, :, :]`, and a
/// cache's length may be nothing, so that its slice stays in the graph.
const ir::Node* made_whole_by(const Match& match, const ir::Node& node, std::string_view argument,
                              std::string_view op) {
  const ir::Node* slice = match.made_by(node, argument, "aten.slice.Tensor");
  const auto whole = slice == nullptr ? std::nullopt : match.value(*slice, "self");
  const bool takes_all = whole && match.number(*slice, "start").value_or(0) == 0 &&
                         match.type(*whole).shape == match.type(slice->results[0]).shape;
  return takes_all ? made_whole_by(match, *slice, "self", op) : match.made_by(node, argument, op);
}

/// reshape(expand(unsqueeze(heads, 2), [b, h, times, s, d]), [b, h * times, s, d])
std::optional<Repeated> repeated(const Match& match, ir::ValueId id) {
  const ir::Node* merged = match.made_by(id, "aten.reshape");
  if (merged == nullptr) merged = match.made_by(id, "aten.view");
  const ir::Node* grown =
      merged == nullptr ? nullptr : match.made_by(*merged, "self", "aten.expand");
  const ir::Node* opened =
      grown == nullptr ? nullptr : made_whole_by(match, *grown, "self", "aten.unsqueeze");
  const auto heads = opened == nullptr ? std::nullopt : match.value(*opened, "self");
  if (!heads || match.type(*heads).shape.size() != 4 || match.number(*opened, "dim") != 2.0)
    return std::nullopt;
  const auto& from = match.type(*heads).shape;
  const auto& between = match.type(grown->results[0]).shape;
  const auto& result = match.type(id).shape;
  const std::vector<shape::Int> wanted{from[0], from[1], between[2], from[2], from[3]};
  const std::vector<shape::Int> joined{from[0], from[1] * between[2], from[2], from[3]};
  if (between != wanted || result != joined) return std::nullopt;
  return Repeated{*heads, between[2]};
}

ir::Arg& argument(ir::Node& node, std::string_view name) {
  for (ir::NamedArg& named : node.args) {
    if (named.name == name) return named.arg;
  }
  node.args.push_back({std::string(name), {}});
  return node.args.back().arg;
}

}  // namespace

void fuse_grouped_attention(ir::Graph& graph) {
  const Match match(graph);
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
    ir::Node& node = graph.node({i});
    if (node.op != "aten.scaled_dot_product_attention" || match.is_true(node, "enable_gqa"))
      continue;
    const auto key = match.value(node, "key");
    const auto value = match.value(node, "value");
    const auto keys = key ? repeated(match, *key) : std::nullopt;
    const auto values = value ? repeated(match, *value) : std::nullopt;
    if (!keys || !values || !(keys->times == values->times)) continue;
    argument(node, "key") = {keys->heads};
    argument(node, "value") = {values->heads};
    argument(node, "enable_gqa") = {true};
  }
  ir::drop_dead_nodes(graph);
}

}  // namespace modelport::passes
