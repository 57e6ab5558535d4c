#include "passes/lowering.h"

#include <fmt/format.h>

#include "ops/rules/rules.h"
#include "passes/rewrite.h"

namespace modelport::passes {

Lowering::Lowering(const ir::Graph& source) : source_(source) {
  target_.name = source.name;
  target_.dims = source.dims;
  for (const shape::Dim& dim : source.dims) dims_.declare(dim.name, dim.hint, dim.range);
  value_of_.resize(source.values().size());
}

ir::Graph Lowering::run() {
  for (const ir::ValueId id : source_.inputs) add_input(id);
  for (const ir::ValueId id : source_.weights) add_weight(id);
  for (std::size_t i = 0; i < source_.nodes().size(); ++i) {
    begin(i);
    lower_node(source_.nodes()[i]);
  }
  problems_.throw_if_any();
  finish();
  return std::move(target_);
}

ir::Arg Lowering::translate(const ir::Arg& arg) const {
  if (const ir::ValueId* id = arg.get<ir::ValueId>()) return {value_of_[id->index]};
  if (const ir::ArgList* list = arg.get<ir::ArgList>()) {
    ir::ArgList items;
    for (const ir::Arg& item : *list) items.push_back(translate(item));
    return {std::move(items)};
  }
  return arg;
}

void Lowering::lower_node(const ir::Node& node) {
  const ir::Place& place = source_.place(node.place);
  const ops::OpDef* op = ops::find_op(node.op);
  const bool ready = !mentions_missing(node);
  std::vector<ir::NamedArg> args;
  if (ready) {
    for (const ir::NamedArg& named : node.args) args.push_back({named.name, translate(named.arg)});
  }
  std::vector<ir::Type> types;
  for (const ir::ValueId id : node.results) types.push_back(source_.value(id).type);
  try {
    if (op == nullptr) refuse(node, "it has no row in the operator table");
    if (!ready) {
      const std::string_view why = emitter().refusal(*op);
      if (why.empty()) return;
      refuse(node, why);
    }
    const ops::Values values =
        emitter().lower(*op, args, types, target_.add_place(place.where, place.module_path));
    for (std::size_t i = 0; i < values.size(); ++i) take(node.results[i], values[i]);
  } catch (const ExportError& error) {
    for (const Diagnostic& found : error.diagnostics()) problems_.add(found);
  }
}

void Lowering::refuse(const ir::Node& node, std::string_view why) {
  const ir::Place& place = source_.place(node.place);
  const ops::emit::TargetFacts& target = emitter().target();
  throw ExportError({.code = Code::unsupported_op,
                     .what = fmt::format("{} has no rule for {}: {}", target.name, node.op, why),
                     .where = place.where,
                     .module_path = place.module_path,
                     .ways_out = target.ways_out});
}

/// After a problem the walk goes on, so that all of them are found; what depends on it is left out.
bool Lowering::mentions_missing(const ir::Node& node) const {
  bool missing = false;
  for (const ir::NamedArg& named : node.args) {
    ir::for_each_value(named.arg, [&](ir::ValueId id) {
      missing = missing || value_of_[id.index] == ops::kNoValue;
    });
  }
  return missing;
}

void Lowering::take(ir::ValueId result, ir::ValueId value) {
  set_value(result, value);
  const ir::Type& type = source_.value(result).type;
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) return take_number(*scalar, value);
  const auto& tensor = std::get<ir::TensorType>(type);
  const ir::TensorType& made = emitter().type(value);
  if (made.dtype != tensor.dtype || made.shape.size() != tensor.shape.size())
    throw InternalError(
        fmt::format("the {} cell of {} gives {} with {} axes instead of {} with {}",
                    emitter().target().name, source_.node(source_.value(result).producer).op,
                    name(made.dtype), made.shape.size(), name(tensor.dtype), tensor.shape.size()));
  // The rule's own shape is the exact one.
  target_.value(value).type = tensor;
  if (is_complex(tensor.dtype)) return;
  for (const shape::Int& size : tensor.shape) {
    const auto symbol = size.as_symbol();
    if (symbol && !emitter().sources().knows(*symbol))
      return emitter().sources().learn_sizes(value, tensor.shape);
  }
}

ir::TensorType Lowering::as_stored(ir::TensorType type) {
  if (!is_complex(type.dtype)) return type;
  type.dtype = ops::to_real(type.dtype);
  type.shape.push_back(2);
  return type;
}

ir::ValueId Lowering::stored_value(ir::ValueId value) {
  const auto* type = std::get_if<ir::TensorType>(&target_.value(value).type);
  return type != nullptr && is_complex(type->dtype) ? emitter().as_pairs(value) : value;
}

void Lowering::drop_pair_views() {
  Replacements replacements(target_);
  std::vector<bool> keep(target_.nodes().size(), true);
  for (std::uint32_t i = 0; i < keep.size(); ++i) {
    ir::Node& node = target_.node({i});
    replacements.apply(node);
    if (node.op != ops::emit::kAsPairs && node.op != ops::emit::kFromPairs) continue;
    replacements.replace(node.results[0], *node.args[0].arg.get<ir::ValueId>());
    keep[i] = false;
  }
  replacements.apply_to_outputs(target_);
  target_.keep_nodes(keep);
  nodes_kept(keep);
}

}  // namespace modelport::passes
