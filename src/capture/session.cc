#include "capture/session.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/all.h>

#include <algorithm>

#include "capture/torch_dtype.h"
#include "ops/fusions/needless_masks.h"
#include "ops/table/names.h"

namespace modelport::capture {

using shape::Bool;
using shape::Int;
using shape::Real;

namespace {

std::vector<Int> plain_shape(const at::Tensor& tensor) {
  return {tensor.sizes().begin(), tensor.sizes().end()};
}

bool same_geometry(const at::Tensor& a, const at::Tensor& b) {
  return a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

/// `bool(b0)` or `not bool(b0)`
bool is_truth_of_data(const Bool& condition) {
  const Bool::Node& node = condition.node();
  if (node.op == Bool::Op::logical_not) return is_truth_of_data(node.operands[0]);
  return node.op == Bool::Op::data;
}

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

Session::Session(std::unique_ptr<Surroundings> surroundings, Data data)
    : surroundings_(std::move(surroundings)), data_(data) {}

ir::PlaceId Session::place() {
  const ir::Place here = surroundings_->place();
  return graph_.add_place(here.where, here.module_path);
}

shape::Dims::Place Session::dims_place() {
  ir::Place here = surroundings_->place();
  return {std::move(here.where), std::move(here.module_path)};
}

bool Session::settle(const Bool& condition) {
  const auto known = dims_.decide(condition);
  if (!known) return dims_.settle(condition, dims_place());
  const Bool simple = dims_.simplify(condition);
  if (!simple.constant()) dims_.meet(*known ? simple : !simple, {});
  return *known;
}

std::int64_t Session::pin(const Int& x) {
  const Int simple = dims_.simplify(x);
  if (const auto plain = simple.constant()) return *plain;
  return dims_.pin(simple, dims_place());
}

double Session::pin(const Real& x) {
  const double value = dims_.hint(x);
  settle(Bool::compare(shape::Compare::eq, x, Real(value)));
  return value;
}

void Session::fail(Code code, std::string what, std::vector<std::string> ways_out) {
  const ir::Place here = surroundings_->place();
  throw ExportError(Diagnostic{.code = code,
                               .what = std::move(what),
                               .where = here.where,
                               .module_path = here.module_path,
                               .ways_out = std::move(ways_out)});
}

void Session::fail_without_weights(std::string_view what) {
  fail(Code::needs_weights, std::string(what),
       {"capture with the weights loaded: modelport.capture(model, inputs)"});
}

at::Tensor Session::add_input(const std::string& name, const at::Tensor& real,
                              std::vector<Int> shape) {
  protect(real);
  const ir::ValueId value =
      graph_.add_input(name, ir::TensorType{from_torch(real.scalar_type()), std::move(shape)});
  return wrap(real, value);
}

void Session::add_weight(const std::string& name, const at::Tensor& tensor, ir::WeightKind kind) {
  const auto tie = [&](const Owner& owner) {
    tied_names_[graph_.value(owner.memory->base).name].push_back(name);
  };
  if (const auto known = owners_by_tensor_.find(tensor.unsafeGetTensorImpl());
      known != owners_by_tensor_.end()) {
    return tie(owners_[known->second]);
  }
  for (const std::size_t index : owners_by_storage_[storage_of(tensor)]) {
    if (same_geometry(owners_[index].tensor, tensor) && storage_of(tensor) != nullptr) {
      owners_by_tensor_.emplace(tensor.unsafeGetTensorImpl(), index);
      return tie(owners_[index]);
    }
  }
  protect(tensor);
  const ir::TensorType type{from_torch(tensor.scalar_type()), plain_shape(tensor)};
  const ir::ValueId value = graph_.add_weight(name, type, kind);
  weight_tensors_.emplace_back(value, tensor);
  owners_by_tensor_.emplace(tensor.unsafeGetTensorImpl(), owners_.size());
  owners_by_storage_[storage_of(tensor)].push_back(owners_.size());
  Owner owner{tensor, std::make_shared<Memory>(Memory{.base = value}), value, {}};
  owner.memory->lost_data = data_ == Data::inputs_only && kind == ir::WeightKind::parameter;
  owners_.push_back(std::move(owner));
}

void Session::protect(const at::Tensor& tensor) {
  if (tensor.is_meta()) return;
  if (const c10::StorageImpl* storage = storage_of(tensor)) protected_.emplace(storage, tensor);
}

void Session::replace_buffer(const std::string& name, const at::Tensor& tensor) {
  const ir::ValueId* buffer = graph_.find_weight(name);
  if (buffer == nullptr) return;  // a second name for another one
  const ir::ValueId value = value_of(tensor);
  if (!(graph_.value(value).type == graph_.value(*buffer).type)) {
    fail(Code::capture_failed,
         "the model puts a tensor of another type or shape in the place of its buffer " + name,
         {"keep a buffer of one shape, and write to it in place", "pass it as an input"});
  }
  graph_.mutations.push_back({*buffer, value});
}

void Session::add_output(const std::string& name, const at::Tensor& tensor) {
  graph_.outputs.push_back({name, ir::Arg{value_of(tensor)}});
}

void Session::add_output(const std::string& name, const Number& number) {
  const auto simple = [this](const auto& x) { return ir::Arg{dims_.simplify(x)}; };
  graph_.outputs.push_back({name, std::visit(simple, number)});
}

ir::Graph Session::finish() {
  for (const Owner& owner : owners_) {
    const auto is_replaced = [&](const ir::Mutation& m) { return m.buffer == *owner.buffer; };
    if (owner.buffer && owner.memory->version > 0 &&
        std::ranges::none_of(graph_.mutations, is_replaced)) {
      graph_.mutations.push_back({*owner.buffer, owner.memory->base});
    }
  }
  assume_numbers();
  const std::vector<ReplacedByData> replaced = data_that_was_replaced();
  graph_.substitute(dims_.replacements());
  for (const shape::Dim& dim : dims_.all()) {
    if (!dims_.replacements().contains(dim.name)) graph_.dims.push_back(dim);
  }
  for (const shape::Guard& guard : dims_.guards()) {
    const bool bounds_data =
        guard.effect == shape::Guard::Effect::bounded && dims_.depends_on_data(guard.condition);
    const bool kept = guard.effect == shape::Guard::Effect::kept || bounds_data;
    if (!kept || is_truth_of_data(guard.condition)) continue;
    shape::Guard stays = guard;
    stays.effect = shape::Guard::Effect::kept;
    stays.condition = dims_.simplify(guard.condition);
    if (!stays.condition.constant()) graph_.guards.push_back(std::move(stays));
  }
  keep_conditions_on_data(replaced);
  ops::fusions::drop_needless_masks(graph_, constants_that_are_true());
  ir::drop_dead_nodes(graph_);
  return std::move(graph_);
}

std::set<ir::ValueId> Session::constants_that_are_true() const {
  const at::AutoDispatchBelowADInplaceOrView below;
  std::set<ir::ValueId> found;
  for (const auto& [value, tensor] : weight_tensors_) {
    if (graph_.value(value).weight_kind == ir::WeightKind::constant &&
        tensor.scalar_type() == at::kBool && tensor.all().item<bool>())
      found.insert(value);
  }
  return found;
}

std::vector<Session::ReplacedByData> Session::data_that_was_replaced() const {
  std::vector<ReplacedByData> found;
  std::set<std::string, std::less<>> seen;
  const auto add = [&](const Int& size, ir::ValueId giver, std::size_t axis) {
    const auto symbol = size.as_symbol();
    if (!symbol || !dims_.replacements().contains(*symbol)) return;
    const std::string name(*symbol);
    if (!dims_.find(name)->from_data || !seen.insert(name).second) return;
    shape::Guard condition{
        Bool::compare(shape::Compare::eq, size, dims_.replacements().find(name)->second)};
    for (const shape::Guard& guard : dims_.guards()) {
      std::set<std::string, std::less<>> symbols;
      shape::collect_symbols(guard.condition, symbols);
      if (!symbols.contains(name)) continue;
      condition.where = guard.where;
      condition.module_path = guard.module_path;
    }
    found.push_back({giver, axis, std::move(condition)});
  };
  for (const ir::Node& node : graph_.nodes()) {
    for (const ir::ValueId id : node.results) {
      const ir::Type& type = graph_.value(id).type;
      if (const auto* tensor = std::get_if<ir::TensorType>(&type)) {
        for (std::size_t axis = 0; axis < tensor->shape.size(); ++axis)
          add(tensor->shape[axis], id, axis);
      } else if (const auto* number = std::get_if<Int>(&std::get<ir::ScalarType>(type).symbol)) {
        // One that was pinned is an assumption already.
        if (!dims_.simplify(*number).is_constant()) {
          add(*number, id, 0);
        } else if (const auto symbol = number->as_symbol()) {
          seen.emplace(*symbol);
        }
      }
    }
  }
  return found;
}

void Session::keep_conditions_on_data(const std::vector<ReplacedByData>& replaced) {
  for (const ReplacedByData& one : replaced) {
    std::set<std::string, std::less<>> symbols;
    shape::collect_symbols(one.condition.condition, symbols);
    for (const std::string& name : symbols) {
      if (!dims_.replacements().contains(name)) continue;
      shape::Dim dim = *dims_.find(name);
      dim.range = dim.declared;
      ir::Type& type = graph_.value(one.giver).type;
      if (auto* tensor = std::get_if<ir::TensorType>(&type)) {
        tensor->shape[one.axis] = Int::symbol(name);
      } else {
        std::get<ir::ScalarType>(type).symbol = Int::symbol(name);
      }
      graph_.dims.push_back(std::move(dim));
    }
    graph_.guards.push_back(one.condition);
  }
}

/// A number read from data that had to be known (the count of a Python loop, the truth of a check)
/// is an assumption about the data.
void Session::assume_numbers() {
  for (const ir::Node& node : graph_.nodes()) {
    if (node.op != ops::names::kItem) continue;
    const auto& symbol = std::get<ir::ScalarType>(graph_.value(node.results[0]).type).symbol;
    const ir::ValueId read = *node.find("self")->get<ir::ValueId>();
    if (const Int* number = std::get_if<Int>(&symbol)) {
      const auto pinned = dims_.simplify(*number).constant();
      if (pinned) graph_.assumptions.push_back({read, *pinned, node.place});
    }
    if (const Bool* truth = std::get_if<Bool>(&symbol)) {
      if (const auto known = dims_.decide(*truth))
        graph_.assumptions.push_back({read, *known, node.place});
    }
  }
}

void Session::restore() {
  const Paused paused;
  const at::NoGradGuard no_grad;
  for (auto& [tensor, contents] : saved_) tensor.copy_(contents);
  saved_.clear();
}

void Session::before_write(const at::Tensor& real) {
  const c10::StorageImpl* storage = storage_of(real);
  if (const auto found = constants_.find(storage); found != constants_.end()) {
    for (const KeptConstant& constant : found->second) {
      at::Tensor& kept = weight_tensors_[constant.slot].second;
      kept = kept.detach().clone();
    }
    constants_.erase(found);
  }
  if (const auto found = protected_.find(storage); found != protected_.end()) {
    const at::Tensor contents = found->second.detach().clone();
    saved_.emplace_back(found->second.detach(), contents);
    protected_.erase(found);
  }
}

Session::Owner* Session::owner_of(const at::Tensor& plain) {
  const auto by_tensor = owners_by_tensor_.find(plain.unsafeGetTensorImpl());
  if (by_tensor != owners_by_tensor_.end()) return &owners_[by_tensor->second];
  const auto by_storage = owners_by_storage_.find(storage_of(plain));
  if (by_storage == owners_by_storage_.end() || by_storage->second.empty()) return nullptr;
  for (const std::size_t index : by_storage->second) {
    if (same_geometry(owners_[index].tensor, plain)) return &owners_[index];
  }
  return &owners_[by_storage->second.front()];
}

std::optional<Trace> Session::strided_view(const Owner& owner, const at::Tensor& plain) {
  const at::Tensor& base = owner.tensor;
  const bool whole = base.is_contiguous() && base.storage_offset() == 0 &&
                     base.scalar_type() == plain.scalar_type();
  if (!whole) return std::nullopt;
  auto step = std::make_shared<ViewStep>();
  step->op = ops::names::kAsStrided;
  step->self_name = "self";
  step->from = graph_.value(owner.memory->base).tensor();
  const auto list = [](c10::IntArrayRef numbers) {
    ir::ArgList items;
    for (const std::int64_t n : numbers) items.push_back({Int(n)});
    return ir::Arg{std::move(items)};
  };
  step->args = {{"size", list(plain.sizes())},
                {"stride", list(plain.strides())},
                {"storage_offset", {Int(plain.storage_offset())}}};
  step->results = {ir::TensorType{step->from.dtype, plain_shape(plain)}};
  Trace trace{owner.memory, step, owner.memory->version - 1, owner.memory->base};
  trace.value = current_value(trace);
  return trace;
}

std::optional<Trace> Session::trace_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  if (TracedTensor* traced = as_traced(tensor)) return traced->trace();
  const Owner* owner = owner_of(tensor);
  return owner == nullptr ? std::nullopt : trace_in(*owner, tensor);
}

std::optional<Trace> Session::trace_in(const Owner& owner, const at::Tensor& plain) {
  if (!same_geometry(owner.tensor, plain)) return strided_view(owner, plain);
  return Trace{owner.memory, nullptr, owner.memory->version, owner.memory->base};
}

ir::ValueId Session::value_of(const at::Tensor& tensor) {
  if (TracedTensor* traced = as_traced(tensor)) return current_value(traced->trace());
  if (std::optional<Trace> trace = trace_of(tensor)) return current_value(*trace);
  return constant_for(tensor);
}

ir::ValueId Session::constant_for(const at::Tensor& plain) {
  if (plain.is_meta()) {
    fail_without_weights("a tensor without data is used that is no weight of the checkpoint");
  }
  const c10::StorageImpl* storage = storage_of(plain);
  for (const KeptConstant& constant : constants_[storage]) {
    if (same_geometry(weight_tensors_[constant.slot].second, plain)) return constant.value;
  }
  const ir::ValueId value =
      graph_.add_weight("const." + std::to_string(constant_count_++),
                        ir::TensorType{from_torch(plain.scalar_type()), plain_shape(plain)},
                        ir::WeightKind::constant);
  constants_[storage].push_back({value, weight_tensors_.size()});
  weight_tensors_.emplace_back(value, plain);
  return value;
}

at::Tensor Session::real_of(const at::Tensor& tensor) {
  if (TracedTensor* traced = as_traced(tensor)) {
    if (traced->trace().memory->lost_data && !traced->real().is_meta()) {
      traced->set_real(traced->real().to(at::kMeta));
    }
    return traced->real();
  }
  Owner* owner = owner_of(tensor);
  if (owner == nullptr || !owner->memory->lost_data || tensor.is_meta()) return tensor;
  if (!same_geometry(owner->tensor, tensor)) return tensor.to(at::kMeta);
  if (!owner->on_meta.defined()) owner->on_meta = tensor.detach().to(at::kMeta);
  return owner->on_meta;
}

at::Tensor Session::wrap(at::Tensor real, Trace trace) {
  if (real.is_conj()) real = real.resolve_conj();
  if (real.is_neg()) real = real.resolve_neg();
  return at::Tensor(
      c10::make_intrusive<TracedTensor>(shared_from_this(), std::move(real), std::move(trace)));
}

at::Tensor Session::wrap(at::Tensor real, ir::ValueId value) {
  return wrap(std::move(real),
              Trace{std::make_shared<Memory>(Memory{.base = value}), nullptr, 0, value});
}

ir::ValueId Session::add_node(std::string_view op, std::vector<ir::NamedArg> args,
                              ir::TensorType type) {
  const ir::NodeId node =
      graph_.add_node(std::string(op), std::move(args), {std::move(type)}, place());
  return graph_.node(node).results.front();
}

}  // namespace modelport::capture
