#include "backends/executorch/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/executorch/emitter.h"
#include "backends/executorch/kernels.h"
#include "ir/text.h"

namespace modelport::executorch {
namespace {

constexpr Index kNotThere = -1;
constexpr std::size_t kToTheEnd = SIZE_MAX;

bool is_static(const ir::TensorType& type) {
  return std::ranges::all_of(type.shape, [](const shape::Int& size) { return size.is_constant(); });
}

bool is_of_xnnpack(const ir::Node& node) { return node.op.starts_with("xnn."); }

}  // namespace

std::int64_t scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::u8:
      return 0;
    case Dtype::i8:
      return 1;
    case Dtype::i16:
      return 2;
    case Dtype::i32:
      return 3;
    case Dtype::i64:
      return 4;
    case Dtype::f16:
      return 5;
    case Dtype::f32:
      return 6;
    case Dtype::f64:
      return 7;
    case Dtype::boolean:
      return 11;
    case Dtype::bf16:
      return 15;
    case Dtype::f8e5m2:
      return 23;
    case Dtype::f8e4m3:
      return 24;
    case Dtype::u16:
      return 27;
    case Dtype::u32:
      return 28;
    case Dtype::u64:
      return 29;
    case Dtype::c64:
    case Dtype::c128:
      break;
  }
  throw ExportError({.code = Code::unsupported_op,
                     .what = fmt::format("a .pte file has no tensors of {}", name(dtype)),
                     .ways_out = {"compute with pairs of reals: torch.view_as_real"}});
}

Emitter::Emitter(const MethodSource& source, const EmitOptions& options, ProgramData& data)
    : source_(source),
      graph_(source.graph),
      options_(options),
      data_(data),
      table_(method_),
      bounds_(graph_, source.bounds),
      numbers_(table_),
      index_of_(graph_.values().size(), kNotThere),
      last_use_(graph_.values().size(), 0),
      used_by_kernels_(graph_.values().size(), false) {
  method_.name = source.name;
  for (const ir::Mutation& mutation : graph_.mutations) {
    if (mutation.buffer != mutation.value) state_.insert(mutation.buffer.index);
  }
}

Method Emitter::run() {
  find_last_uses();
  inputs();
  const std::vector<ir::Node>& nodes = graph_.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t end = i;
    while (end < nodes.size() && is_of_xnnpack(nodes[end])) ++end;
    if (end != i) delegate(i, end);
    if (end < nodes.size()) node(end, nodes[end]);
    i = end;
  }
  outputs();
  mutations();
  bounds_.throw_if_unbounded();
  method_.assumed_bounds = bounds_.assumed();
  return std::move(method_);
}

void Emitter::find_last_uses() {
  for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
    const bool by_kernel = !is_of_xnnpack(graph_.nodes()[i]);
    ir::for_each_operand(graph_.nodes()[i], [&](ir::ValueId id) {
      last_use_[id.index] = i;
      if (by_kernel) used_by_kernels_[id.index] = true;
    });
  }
  const auto keep = [&](ir::ValueId id) {
    last_use_[id.index] = kToTheEnd;
    used_by_kernels_[id.index] = true;
  };
  for (const ir::Output& output : graph_.outputs) ir::for_each_value(output.value, keep);
  for (const ir::Mutation& mutation : graph_.mutations) keep(mutation.value);
  if (!options_.checks_as_outputs) return;
  for (const ir::Assumption& assumption : graph_.assumptions) keep(assumption.value);
}

void Emitter::inputs() {
  for (const ir::ValueId id : graph_.inputs) {
    const ir::Value& value = graph_.value(id);
    const auto* type = std::get_if<ir::TensorType>(&value.type);
    if (type == nullptr)
      throw ExportError(
          {.code = Code::bad_graph,
           .what = fmt::format(
               "input {} is a number, and a .pte file takes numbers as tensors only", value.name),
           .ways_out = {
               fmt::format("call the model with a tensor: {}=torch.tensor([1])", value.name)}});
    define(id, table_.tensor(tensor_of(*type, {})));
    method_.inputs.push_back(index_of_[id.index]);
  }
}

Tensor Emitter::tensor_of(const ir::TensorType& type, ir::PlaceId place) {
  scalar_type(type.dtype);
  return {.dtype = type.dtype, .shape = type.shape, .sizes = bounds_.sizes(type.shape, place)};
}

void Emitter::define(ir::ValueId id, Index index) {
  index_of_[id.index] = index;
  const auto* type = std::get_if<ir::TensorType>(&graph_.value(id).type);
  if (type == nullptr) return;
  numbers_.learn_sizes(index, type->shape);
  needed_to_.resize(method_.storages.size(), 0);
  std::size_t& needed = needed_to_[method_.tensor(index).storage];
  needed = std::max(needed, last_use_[id.index]);
}

bool Emitter::is_needed_after(std::size_t at, std::size_t storage) const {
  return storage < needed_to_.size() && needed_to_[storage] > at;
}

Index Emitter::value(ir::ValueId id) {
  Index& index = index_of_[id.index];
  if (index == kNotThere && graph_.value(id).origin == ir::Origin::weight) define(id, weight(id));
  if (index == kNotThere) throw InternalError("a value is used before a node gives it");
  return index;
}

ProgramData::Source Emitter::weight_source(ir::ValueId id) const {
  const ir::Value& value = graph_.value(id);
  const ir::TensorType& type = value.tensor();
  if (!is_static(type))
    throw InternalError(fmt::format("weight {} has a symbolic shape", value.name));
  ProgramData::Source source{.name = value.name,
                             .dtype = type.dtype,
                             .shape = {},
                             .weight = &source_.weights.at(value.name)};
  for (const shape::Int& size : type.shape) source.shape.push_back(*size.constant());
  return source;
}

/// Weights come into the method when something needs them.
Index Emitter::weight(ir::ValueId id) {
  const ir::TensorType& type = graph_.value(id).tensor();
  const ProgramData::Source source = weight_source(id);
  Tensor tensor = tensor_of(type, {});
  Storage storage{.bytes = byte_count(type.dtype, tensor.sizes)};
  if (state_.contains(id.index)) {
    storage.kind = Storage::Kind::state;
    storage.entry = data_.state(source);
  } else {
    storage.kind = Storage::Kind::constant;
    storage.entry = data_.constant(source);
  }
  return table_.tensor_in(table_.add_storage(storage), std::move(tensor));
}

Index Emitter::clone(Index tensor) {
  Tensor copy = method_.tensor(tensor);
  copy.is_moved = false;
  const Index out = table_.tensor(std::move(copy));
  method_.call("aten::clone.out", {tensor, table_.null(), out, out}, {out});
  return out;
}

void Emitter::refuse(const ir::Node& node, std::string why) const {
  const ir::Place& place = graph_.place(node.place);
  throw ExportError({.code = Code::unsupported_op,
                     .what = std::move(why),
                     .where = place.where,
                     .module_path = place.module_path,
                     .notes = {"node    " + ir::print(graph_, node)},
                     .ways_out = {"export to another format: modelport export onnx"}});
}

void Emitter::outputs() {
  for (const ir::Mutation& mutation : graph_.mutations) {
    if (mutation.buffer == mutation.value) continue;
    const Index state = value(mutation.buffer);
    const Index after = value(mutation.value);
    if (method_.tensor(state).storage != method_.tensor(after).storage)
      method_.state_writes.push_back({state, after});
  }
  for (const ir::Output& output : graph_.outputs)
    method_.outputs.push_back(argument({output.name, output.value}));
  if (!options_.checks_as_outputs) return;
  for (const ir::Assumption& assumption : graph_.assumptions)
    method_.outputs.push_back(value(assumption.value));
}

/// What a state held before it is written at the end has to be put aside, if somebody wants it
/// then.
void Emitter::mutations() {
  std::unordered_set<std::size_t> overwritten;
  for (const StateWrite& write : method_.state_writes)
    overwritten.insert(method_.tensor(write.state).storage);
  const auto is_overwritten = [&](Index index) {
    const auto* tensor = std::get_if<Tensor>(&method_.values[static_cast<std::size_t>(index)]);
    return tensor != nullptr && overwritten.contains(tensor->storage);
  };
  for (Index& output : method_.outputs) {
    if (is_overwritten(output)) output = clone(output);
  }
  for (StateWrite& write : method_.state_writes) {
    if (is_overwritten(write.value)) write.value = clone(write.value);
  }
}

Method emit(const MethodSource& source, const EmitOptions& options, ProgramData& data) {
  return Emitter(source, options, data).run();
}

}  // namespace modelport::executorch
