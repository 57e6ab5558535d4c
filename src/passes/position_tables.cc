#include "passes/position_tables.h"

#include <algorithm>
#include <set>

namespace modelport::passes {
namespace {

ir::TensorType with_sizes(ir::TensorType type, const shape::Substitution& sizes) {
  for (shape::Int& size : type.shape) size = shape::substitute(size, sizes);
  return type;
}

bool only_mentions(const ir::Type& type, const std::set<std::string, std::less<>>& symbols) {
  const auto* tensor = std::get_if<ir::TensorType>(&type);
  if (tensor == nullptr) return false;
  std::set<std::string, std::less<>> found;
  for (const shape::Int& size : tensor->shape) shape::collect_symbols(size, found);
  return std::ranges::all_of(found, [&](const auto& name) { return symbols.contains(name); });
}

}  // namespace

bool PositionTables::can_make(const ir::Graph& graph, const ops::fusions::Rotary& rotary) {
  const ir::TensorType& positions = graph.value(rotary.positions).tensor();
  if (positions.dtype != Dtype::i64) return false;
  std::set<std::string, std::less<>> symbols;
  for (const shape::Int& size : positions.shape) {
    if (!size.as_symbol()) return false;
    symbols.emplace(*size.as_symbol());
  }
  for (const ir::ValueId id : {rotary.cos, rotary.sin}) {
    const auto chain = ops::fusions::chain_from(graph, rotary.positions, id);
    if (!chain) return false;
    for (const ir::NodeId node : *chain) {
      for (const ir::ValueId result : graph.node(node).results) {
        if (!only_mentions(graph.value(result).type, symbols)) return false;
      }
    }
  }
  return true;
}

ir::Arg PositionTables::translated(const ir::Arg& arg, const shape::Substitution& sizes) const {
  if (const auto* id = arg.get<ir::ValueId>()) {
    const auto known = made_.find(*id);
    return {known == made_.end() ? rebuild_(*id) : known->second};
  }
  if (const auto* size = arg.get<shape::Int>()) return {shape::substitute(*size, sizes)};
  const auto* list = arg.get<ir::ArgList>();
  if (list == nullptr) return arg;
  ir::ArgList items;
  for (const ir::Arg& item : *list) items.push_back(translated(item, sizes));
  return {std::move(items)};
}

void PositionTables::copy(const ir::Node& node, const shape::Substitution& sizes) {
  if (made_.contains(node.results[0])) return;
  std::vector<ir::NamedArg> args;
  for (const ir::NamedArg& named : node.args)
    args.push_back({named.name, translated(named.arg, sizes)});
  std::vector<ir::Type> types;
  for (const ir::ValueId id : node.results)
    types.emplace_back(with_sizes(source_.value(id).tensor(), sizes));
  const auto results = rebuild_.add(node.op, std::move(args), std::move(types), node.place);
  for (std::size_t i = 0; i < results.size(); ++i) made_[node.results[i]] = results[i];
}

ir::ValueId PositionTables::table(const ops::fusions::Rotary& rotary, ir::ValueId of) {
  if (const auto known = tables_.find(of); known != tables_.end()) return known->second;
  const auto& shape = source_.value(rotary.positions).tensor().shape;
  const shape::Substitution sizes{{std::string(*shape[0].as_symbol()), shape::Int(1)},
                                  {std::string(*shape[1].as_symbol()), shape::Int(count_)}};
  const shape::Int count(count_);
  if (!made_.contains(rotary.positions)) {
    made_[rotary.positions] = rebuild_.add("modelport.positions", {{"count", {count}}},
                                           {ir::TensorType{Dtype::i64, {1, count}}}, {})[0];
  }
  const auto chain = ops::fusions::chain_from(source_, rotary.positions, of);
  for (const ir::NodeId node : *chain) copy(source_.node(node), sizes);
  const ir::ValueId whole = made_[of];
  const Dtype dtype = rebuild_.type(whole).dtype;
  const ir::ValueId columns = rebuild_.add("modelport.position_table",
                                           {{"self", {whole}},
                                            {"pairs", {shape::Int(rotary.pairs)}},
                                            {"step", {shape::Int(rotary.step)}}},
                                           {ir::TensorType{dtype, {count, rotary.pairs}}}, {})[0];
  return tables_.emplace(of, columns).first->second;
}

}  // namespace modelport::passes
