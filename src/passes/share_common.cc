#include <unordered_map>
#include <unordered_set>

#include "ir/text.h"
#include "passes/onnx_passes.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

std::size_t mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6U) + (seed >> 2U));
}

std::size_t hash_of(const ir::Arg& arg) {
  if (const auto* id = arg.get<ir::ValueId>()) return mix(1, id->index);
  if (const auto* x = arg.get<shape::Int>()) return mix(2, x->hash());
  if (const auto* real = arg.get<double>()) return mix(3, std::hash<double>{}(*real));
  if (const auto* text = arg.get<std::string>()) return mix(4, std::hash<std::string>{}(*text));
  if (const auto* dtype = arg.get<Dtype>()) return mix(5, static_cast<std::size_t>(*dtype));
  std::size_t hash = mix(6, arg.value.index());
  if (const auto* list = arg.get<ir::ArgList>()) {
    for (const ir::Arg& item : *list) hash = mix(hash, hash_of(item));
  }
  return hash;
}

std::size_t hash_of(const ir::Node& node) {
  std::size_t hash = std::hash<std::string>{}(node.op);
  for (const ir::NamedArg& named : node.args)
    hash = mix(mix(hash, std::hash<std::string>{}(named.name)), hash_of(named.arg));
  return hash;
}

bool is_random(std::string_view op) {
  return op.starts_with("onnx.Random") || op == "onnx.Bernoulli" || op == "onnx.Dropout" ||
         op == "onnx.Multinomial";
}

}  // namespace

void share_common(ir::Graph& graph) {
  Replacements replacements(graph);
  std::unordered_set<std::uint32_t> outputs;
  for (const ir::Output& output : graph.outputs)
    outputs.insert(output.value.get<ir::ValueId>()->index);
  std::unordered_multimap<std::size_t, ir::NodeId> known;
  std::vector<bool> keep(graph.nodes().size(), true);
  for (std::uint32_t i = 0; i < keep.size(); ++i) {
    ir::Node& node = graph.node({i});
    replacements.apply(node);
    if (is_random(node.op)) continue;
    const std::size_t hash = hash_of(node);
    bool shared = false;
    for (auto [it, end] = known.equal_range(hash); it != end && !shared; ++it) {
      const ir::Node& other = graph.node(it->second);
      if (other.op != node.op || other.args != node.args ||
          other.results.size() != node.results.size())
        continue;
      // Outputs are values of their own.
      bool is_output = false;
      for (const ir::ValueId id : node.results) is_output = is_output || outputs.contains(id.index);
      if (is_output) continue;
      for (std::size_t r = 0; r < node.results.size(); ++r)
        replacements.replace(node.results[r], other.results[r]);
      keep[i] = false;
      shared = true;
    }
    if (!shared) known.emplace(hash, ir::NodeId{i});
  }
  replacements.apply_to_outputs(graph);
  graph.keep_nodes(keep);
}

}  // namespace modelport::passes
