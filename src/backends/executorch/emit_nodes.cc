// What each kind of node becomes.
#include <fmt/format.h>

#include <algorithm>

#include "backends/executorch/emitter.h"
#include "backends/executorch/kernels.h"
#include "backends/executorch/literal.h"
#include "backends/executorch/xnnpack/payload.h"

namespace modelport::executorch {
namespace {

const ir::ValueId& operand(const ir::Node& node) {
  const ir::ValueId* id = node.args.empty() ? nullptr : node.args[0].arg.get<ir::ValueId>();
  if (id == nullptr) throw InternalError(node.op + " needs a tensor as its first argument");
  return *id;
}

void check_form(const ir::Node& node, const weights::TensorForm& form, const Tensor& tensor) {
  if (form.dtype != tensor.dtype || form.shape != tensor.sizes)
    throw InternalError(node.op + " gives other types than its layout has");
}

}  // namespace

/// Delegates have such data with them.
bool Emitter::is_used_by_kernels(const ir::Node& node) const {
  return std::ranges::any_of(node.results,
                             [&](ir::ValueId id) { return used_by_kernels_[id.index]; });
}

void Emitter::node(std::size_t at, const ir::Node& node) {
  if (node.op == "et.view") return view(node);
  if (node.op == "et.delegate") return delegate(node);
  if (node.op == "et.fold_norm") return;
  if (node.op == "et.constant" || node.op == "et.quantize") {
    if (!is_used_by_kernels(node)) return;
    return node.op == "et.constant" ? constant(node) : quantize(node);
  }
  const std::optional<std::string> name = kernel_name(node.op);
  if (!name) refuse(node, fmt::format("executorch has no rule for {}", node.op));
  kernel(at, node, *name);
}

void Emitter::kernel(std::size_t at, const ir::Node& node, const std::string& name) {
  if (node.results.empty()) refuse(node, fmt::format("{} gives nothing", name));
  std::vector<Index> args;
  for (const ir::NamedArg& named : node.args) args.push_back(argument(named));
  if (std::holds_alternative<ir::ScalarType>(graph_.value(node.results[0]).type))
    return number(node, name, std::move(args));
  if (written_operand(name)) return in_place(at, node, name, std::move(args));
  if (selects_elements(name)) {
    const Tensor& from = method_.tensor(value(operand(node)));
    std::int64_t most = 1;
    for (const std::int64_t size : from.sizes) most *= size;
    bounds_.learn(graph_.value(node.results[0]).tensor().shape[0], most);
  }
  const std::vector<Index> outs = results(node);
  if (gives_list(name)) {
    const Index list = method_.add_value(TensorList{outs});
    args.insert(args.end(), {list, list});
  } else {
    args.insert(args.end(), outs.begin(), outs.end());
    args.push_back(outs.size() == 1 ? outs[0] : method_.add_value(TensorList{outs}));
  }
  method_.call(name, std::move(args), outs);
}

std::vector<Index> Emitter::results(const ir::Node& node) {
  std::vector<Index> outs;
  for (const ir::ValueId id : node.results) {
    const auto* type = std::get_if<ir::TensorType>(&graph_.value(id).type);
    if (type == nullptr) refuse(node, fmt::format("{} gives tensors and numbers", node.op));
    outs.push_back(table_.tensor(tensor_of(*type, node.place)));
  }
  for (std::size_t i = 0; i < outs.size(); ++i) define(node.results[i], outs[i]);
  return outs;
}

/// The result comes once, as the last argument.
void Emitter::number(const ir::Node& node, const std::string& name, std::vector<Index> args) {
  const auto& type = std::get<ir::ScalarType>(graph_.value(node.results[0]).type);
  const Index slot = std::holds_alternative<shape::Int>(type.symbol)    ? table_.slot_for_int()
                     : std::holds_alternative<shape::Real>(type.symbol) ? table_.slot_for_double()
                                                                        : table_.slot_for_bool();
  args.push_back(slot);
  method_.call(name, std::move(args), {});
  define(node.results[0], slot);
  numbers_.learn_number(type, slot);
}

/// The kernel writes to an operand, which is the result from there on. One that is still needed as
/// it was, or must not change, is copied first.
void Emitter::in_place(std::size_t at, const ir::Node& node, const std::string& name,
                       std::vector<Index> args) {
  const std::size_t position = *written_operand(name);
  if (position >= args.size() || node.results.size() != 1)
    refuse(node, fmt::format("{} has other operands than expected", name));
  Index& written = args[position];
  const std::size_t storage = method_.tensor(written).storage;
  if (method_.storages[storage].kind == Storage::Kind::constant || is_needed_after(at, storage))
    written = clone(written);
  const Index result = written;
  if (has_idle_out(name)) {
    const Index idle =
        table_.tensor({.dtype = method_.tensor(result).dtype, .shape = {1}, .sizes = {1}});
    args.insert(args.end(), {idle, idle});
  } else {
    args.push_back(result);
  }
  method_.call(name, std::move(args), {result});
  define(node.results[0], result);
}

void Emitter::view(const ir::Node& node) {
  const Index from = value(operand(node));
  const Tensor& source = method_.tensor(from);
  Tensor tensor = tensor_of(graph_.value(node.results[0]).tensor(), node.place);
  if (tensor.dtype != source.dtype) refuse(node, "et.view cannot change the type");
  const std::size_t storage = source.storage;
  const bool is_constant = method_.storages[storage].kind == Storage::Kind::constant;
  const bool is_fixed = !source.is_dynamic() && !tensor.is_dynamic();
  if (is_fixed && !(is_constant && options_.external_constants))
    return define(node.results[0], table_.tensor_in(storage, std::move(tensor)));
  IntList sizes;
  for (const shape::Int& size : tensor.shape) sizes.items.push_back(numbers_.integer(size));
  const Index list = table_.list(sizes);
  Index out = 0;
  if (is_constant) {
    out = table_.tensor(std::move(tensor));
    method_.call("aten::view_copy.out", {from, list, out, out}, {out});
  } else {
    tensor.is_moved = true;
    out = table_.tensor_in(storage, std::move(tensor));
    method_.call("executorch_prim::et_view.default", {from, list, out}, {});
  }
  define(node.results[0], out);
}

void Emitter::delegate(const ir::Node& node) {
  const ir::Arg* payload = node.find("payload");
  const ir::Arg* inputs = node.find("inputs");
  if (payload == nullptr || payload->get<shape::Int>() == nullptr || inputs == nullptr ||
      inputs->get<ir::ArgList>() == nullptr)
    throw InternalError("et.delegate needs a payload and inputs");
  const auto number = static_cast<std::size_t>(payload->get<shape::Int>()->constant().value_or(-1));
  if (number >= options_.payloads)
    throw InternalError(
        fmt::format("et.delegate names payload {} of {}", number, options_.payloads));
  std::vector<Index> args;
  for (const ir::Arg& input : *inputs->get<ir::ArgList>())
    args.push_back(value(*input.get<ir::ValueId>()));
  const std::vector<Index> outs = results(node);
  args.insert(args.end(), outs.begin(), outs.end());
  call_delegate(number, std::move(args), outs);
}

void Emitter::constant(const ir::Node& node) {
  Tensor tensor = tensor_of(graph_.value(node.results[0]).tensor(), node.place);
  std::string bytes = literal_bytes(graph_, node);
  Storage storage{.kind = Storage::Kind::constant, .bytes = bytes.size()};
  storage.entry = data_.constant(tensor.dtype, tensor.sizes, std::move(bytes));
  define(node.results[0], table_.tensor_in(table_.add_storage(storage), std::move(tensor)));
}

/// Kernels find codes and scales among the constants.
void Emitter::quantize(const ir::Node& node) {
  const ir::ValueId weight = operand(node);
  const ProgramData::Quantized made = data_.constants(weight_source(weight), scheme_of(node));
  const std::size_t entries[] = {made.codes, made.scales};
  for (std::size_t i = 0; i < 2; ++i) {
    Tensor tensor = tensor_of(graph_.value(node.results[i]).tensor(), node.place);
    check_form(node, i == 0 ? made.form.codes : made.form.scales, tensor);
    const Storage storage{.kind = Storage::Kind::constant,
                          .entry = entries[i],
                          .bytes = byte_count(tensor.dtype, tensor.sizes)};
    define(node.results[i], table_.tensor_in(table_.add_storage(storage), std::move(tensor)));
  }
}

/// Nodes of XNNPACK in a row: one delegate.
void Emitter::delegate(std::size_t begin, std::size_t end) {
  xnnpack::Payload payload = xnnpack::payload_of(
      {.graph = graph_,
       .begin = begin,
       .end = end,
       .is_needed_later = [&](ir::ValueId id) { return last_use_[id.index] >= end; },
       .is_constant = [&](ir::ValueId id) { return !state_.contains(id.index); },
       .source = [&](ir::ValueId id) { return weight_source(id); }},
      bounds_, data_);
  std::vector<Index> args, outs;
  for (const ir::ValueId id : payload.inputs) args.push_back(value(id));
  for (const ir::ValueId id : payload.outputs) {
    const ir::PlaceId place = graph_.node(graph_.value(id).producer).place;
    outs.push_back(table_.tensor(tensor_of(graph_.value(id).tensor(), place)));
    define(id, outs.back());
  }
  args.insert(args.end(), outs.begin(), outs.end());
  const std::size_t number = data_.add_delegate(
      {.backend = "XnnpackBackend", .payload = blob_of(std::move(payload.bytes))});
  call_delegate(number, std::move(args), std::move(outs));
}

void Emitter::call_delegate(std::size_t number, std::vector<Index> args, std::vector<Index> outs) {
  method_.delegates.push_back(number);
  method_.instructions.push_back({.kind = Instruction::Kind::delegate,
                                  .callee = method_.delegates.size() - 1,
                                  .args = std::move(args),
                                  .results = std::move(outs)});
}

}  // namespace modelport::executorch
