#include "passes/position_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "passes/onnx_passes.h"

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

PositionTables::PositionTables(const ir::Graph& source, Rebuild& rebuild, std::int64_t positions)
    : source_(source), rebuild_(rebuild), count_(positions) {
  program_.name = "tables";
  program_.add_input("positions", ir::TensorType{Dtype::i64, {1, shape::Int(count_)}});
}

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

/// A weight or what was copied already.
ir::ValueId PositionTables::in_program(ir::ValueId of) {
  if (const auto known = made_.find(of); known != made_.end()) return known->second;
  const ir::Value& weight = source_.value(of);
  const ir::ValueId added = program_.add_weight(weight.name, weight.tensor(), weight.weight_kind);
  return made_.emplace(of, added).first->second;
}

ir::Arg PositionTables::translated(const ir::Arg& arg, const shape::Substitution& sizes) {
  if (const auto* id = arg.get<ir::ValueId>()) return {in_program(*id)};
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
  const ir::NodeId added = program_.add_node(node.op, std::move(args), std::move(types));
  for (std::size_t i = 0; i < node.results.size(); ++i)
    made_[node.results[i]] = program_.node(added).results[i];
}

/// By the module that computes it: "model.rotary_emb.cos".
std::string PositionTables::free_name(ir::ValueId of, std::string_view what) const {
  const std::string& path =
      source_.place(source_.node(source_.value(of).producer).place).module_path;
  const std::string first = path.empty() ? std::string(what) : fmt::format("{}.{}", path, what);
  std::string name = first;
  for (int i = 1; rebuild_.graph().find_weight(name) != nullptr; ++i)
    name = fmt::format("{}.{}", first, i);
  return name;
}

ir::ValueId PositionTables::table(const ops::fusions::Rotary& rotary, ir::ValueId of,
                                  std::string_view what) {
  if (const auto known = tables_.find(of); known != tables_.end()) return known->second;
  const auto& shape = source_.value(rotary.positions).tensor().shape;
  const shape::Substitution sizes{{std::string(*shape[0].as_symbol()), shape::Int(1)},
                                  {std::string(*shape[1].as_symbol()), shape::Int(count_)}};
  made_[rotary.positions] = program_.inputs[0];
  const auto chain = ops::fusions::chain_from(source_, rotary.positions, of);
  for (const ir::NodeId node : *chain) copy(source_.node(node), sizes);
  const ir::ValueId columns = ops::fusions::add_columns(program_, in_program(of), rotary);
  const std::string name = free_name(of, what);
  program_.outputs.push_back({name, {columns}});
  const ir::ValueId weight =
      rebuild_.graph().add_weight(name, program_.value(columns).tensor(), ir::WeightKind::constant);
  return tables_.emplace(of, weight).first->second;
}

ir::Graph PositionTables::program() && {
  share_common(program_);  // models compute it in each layer
  return std::move(program_);
}

}  // namespace modelport::passes
