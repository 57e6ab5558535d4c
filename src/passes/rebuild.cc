#include "passes/rebuild.h"

namespace modelport::passes {

Rebuild::Rebuild(const ir::Graph& source) : source_(source), value_of_(source.values().size()) {
  graph_.name = source.name;
  graph_.dims = source.dims;
  graph_.guards = source.guards;
  for (const ir::ValueId id : source.inputs)
    value_of_[id.index] = graph_.add_input(source.value(id).name, source.value(id).type);
  for (const ir::ValueId id : source.weights) {
    const ir::Value& weight = source.value(id);
    value_of_[id.index] = graph_.add_weight(weight.name, weight.tensor(), weight.weight_kind);
  }
  // Places keep their numbers.
  for (std::uint32_t i = 1; i < source.place_count(); ++i)
    graph_.add_place(source.place({i}).where, source.place({i}).module_path);
}

ir::Arg Rebuild::translated(const ir::Arg& arg) const {
  if (const auto* id = arg.get<ir::ValueId>()) return {value_of_[id->index]};
  if (const auto* list = arg.get<ir::ArgList>()) {
    ir::ArgList items;
    for (const ir::Arg& item : *list) items.push_back(translated(item));
    return {std::move(items)};
  }
  return arg;
}

void Rebuild::copy(const ir::Node& node) {
  std::vector<ir::NamedArg> args;
  for (const ir::NamedArg& named : node.args) args.push_back({named.name, translated(named.arg)});
  std::vector<ir::Type> types;
  for (const ir::ValueId id : node.results) types.push_back(source_.value(id).type);
  const ir::NodeId copied = graph_.add_node(node.op, std::move(args), std::move(types), node.place);
  for (std::size_t i = 0; i < node.results.size(); ++i)
    value_of_[node.results[i].index] = graph_.node(copied).results[i];
}

std::vector<ir::ValueId> Rebuild::add(std::string op, std::vector<ir::NamedArg> args,
                                      std::vector<ir::Type> types, ir::PlaceId place) {
  return graph_.node(graph_.add_node(std::move(op), std::move(args), std::move(types), place))
      .results;
}

ir::ValueId Rebuild::emit(std::string op, const std::vector<ir::ValueId>& inputs,
                          std::vector<ir::NamedArg> attributes, ir::TensorType type,
                          ir::PlaceId place) {
  std::vector<ir::NamedArg> args;
  if (!inputs.empty()) {
    ir::ArgList list;
    for (const ir::ValueId id : inputs) list.push_back({id});
    args.push_back({"inputs", {std::move(list)}});
  }
  for (ir::NamedArg& attribute : attributes) args.push_back(std::move(attribute));
  const ir::NodeId node = graph_.add_node(std::move(op), std::move(args), {std::move(type)}, place);
  return graph_.node(node).results[0];
}

ir::ValueId Rebuild::ints(const std::vector<std::int64_t>& numbers) {
  ir::ArgList values;
  for (const std::int64_t number : numbers) values.push_back({shape::Int(number)});
  const shape::Int count(static_cast<std::int64_t>(numbers.size()));
  return emit(
      "onnx.Constant", {},
      {{"dtype", {Dtype::i64}}, {"shape", {ir::ArgList{{count}}}}, {"values", {std::move(values)}}},
      {Dtype::i64, {count}}, {});
}

ir::ValueId Rebuild::number(double number, Dtype dtype) {
  const ir::Arg value =
      is_floating(dtype) ? ir::Arg{number} : ir::Arg{shape::Int(static_cast<std::int64_t>(number))};
  return emit("onnx.Constant", {},
              {{"dtype", {dtype}}, {"shape", {ir::ArgList{}}}, {"values", {ir::ArgList{value}}}},
              {dtype, {}}, {});
}

ir::Graph Rebuild::finish() && {
  for (const ir::Output& output : source_.outputs)
    graph_.outputs.push_back({output.name, translated(output.value)});
  for (const ir::Mutation& mutation : source_.mutations)
    graph_.mutations.push_back({operator()(mutation.buffer), operator()(mutation.value)});
  for (const ir::Assumption& assumption : source_.assumptions)
    graph_.assumptions.push_back(
        {operator()(assumption.value), assumption.expected, assumption.place, assumption.what});
  return std::move(graph_);
}

}  // namespace modelport::passes
