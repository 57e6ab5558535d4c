#include "ir/graph.h"

#include <algorithm>
#include <limits>

#include "ir/lexical.h"

template struct modelport::OneOf<modelport::shape::Int, modelport::shape::Real,
                                 modelport::shape::Bool>;
template struct modelport::OneOf<modelport::ir::TensorType, modelport::ir::ScalarType>;
template struct modelport::OneOf<modelport::ir::None, modelport::ir::ValueId, bool,
                                 modelport::shape::Int, double, modelport::shape::Real,
                                 modelport::shape::Bool, std::string, modelport::Dtype,
                                 modelport::ir::ArgList>;
template class std::vector<modelport::ir::Arg>;
template class std::vector<modelport::ir::NamedArg>;
template class std::vector<modelport::ir::Node>;
template class std::vector<modelport::ir::Type>;
template class std::vector<modelport::ir::ValueId>;
template class std::deque<modelport::ir::Value>;

namespace modelport::ir {

namespace {

std::uint32_t next_index(std::size_t size) {
  if (size >= std::numeric_limits<std::uint32_t>::max()) throw InternalError("a graph too large");
  return static_cast<std::uint32_t>(size);
}

std::size_t hash_of(const SourceLine& where, std::string_view module_path) {
  const std::hash<std::string_view> hash;
  std::size_t mixed = static_cast<std::size_t>(where.line);
  for (const std::string_view part :
       {std::string_view(where.file), std::string_view(where.function), module_path}) {
    mixed = mixed * 0x9e3779b97f4a7c15U + hash(part);
  }
  return mixed;
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(const Graph& other) = default;
Graph::Graph(Graph&& other) noexcept(false) = default;
Graph& Graph::operator=(const Graph& other) = default;
Graph& Graph::operator=(Graph&& other) noexcept(false) = default;
Graph::~Graph() = default;

bool Arg::operator==(const Arg& other) const {
  if (const double* number = get<double>()) {
    const double* other_number = other.get<double>();
    return other_number != nullptr && same_number(*number, *other_number);
  }
  return value == other.value;
}

const Arg* Node::find(std::string_view name) const {
  const auto found = std::ranges::find(args, name, &NamedArg::name);
  return found == args.end() ? nullptr : &found->arg;
}

ValueId Graph::add_input(std::string name, Type type) {
  const ValueId id{next_index(values_.size())};
  inputs_by_name_.try_emplace(name, id);
  values_.push_back({.type = std::move(type),
                     .origin = Origin::input,
                     .name = std::move(name),
                     .producer = {},
                     .weight_kind = WeightKind::parameter});
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_weight(std::string name, TensorType type, WeightKind kind) {
  const ValueId id{next_index(values_.size())};
  weights_by_name_.try_emplace(name, id);
  values_.push_back({.type = std::move(type),
                     .origin = Origin::weight,
                     .name = std::move(name),
                     .producer = {},
                     .weight_kind = kind});
  weights.push_back(id);
  return id;
}

void Graph::rename_input(ValueId id, std::string name) {
  Value& input = value(id);
  if (input.name == name) return;
  if (inputs_by_name_.contains(name)) throw InternalError("two inputs of one name");
  inputs_by_name_.erase(input.name);
  inputs_by_name_.emplace(name, id);
  input.name = std::move(name);
}

NodeId Graph::add_node(std::string op, std::vector<NamedArg> args, std::vector<Type> results,
                       PlaceId place) {
  const NodeId id{next_index(nodes_.size())};
  Node& node = nodes_.emplace_back(Node{std::move(op), std::move(args), {}, place});
  node.results.reserve(results.size());
  for (Type& type : results) {
    node.results.push_back({next_index(values_.size())});
    values_.push_back({.type = std::move(type),
                       .origin = Origin::node,
                       .name = {},
                       .producer = id,
                       .weight_kind = WeightKind::parameter});
  }
  return id;
}

PlaceId Graph::add_place(const SourceLine& where, std::string_view module_path) {
  if (module_path.empty() && where == SourceLine{}) return {};
  const std::size_t hash = hash_of(where, module_path);
  const auto [begin, end] = places_by_hash_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    const Place& place = places_[known->second.index];
    if (place.where == where && place.module_path == module_path) return known->second;
  }
  const PlaceId id{next_index(places_.size())};
  places_.push_back({where, std::string(module_path)});
  places_by_hash_.emplace(hash, id);
  return id;
}

const ValueId* Graph::find_input(std::string_view name) const {
  const auto found = inputs_by_name_.find(name);
  return found == inputs_by_name_.end() ? nullptr : &found->second;
}

const ValueId* Graph::find_weight(std::string_view name) const {
  const auto found = weights_by_name_.find(name);
  return found == weights_by_name_.end() ? nullptr : &found->second;
}

}  // namespace modelport::ir
