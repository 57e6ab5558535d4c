// What each kind of node becomes.
#include <fmt/format.h>

#include "backends/executorch/emitter.h"
#include "backends/executorch/kernels.h"
#include "weights/convert.h"

namespace modelport::executorch {
namespace {

const ir::ValueId& operand(const ir::Node& node) {
  const ir::ValueId* id = node.args.empty() ? nullptr : node.args[0].arg.get<ir::ValueId>();
  if (id == nullptr) throw InternalError(node.op + " needs a tensor as its first argument");
  return *id;
}

template <class Number>
void append(std::string& raw, Number number) {
  raw.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

void append_integer(std::string& raw, Dtype dtype, std::int64_t value) {
  raw.append(reinterpret_cast<const char*>(&value), byte_size(dtype));  // little-endian
}

std::string bytes_of(const ir::ArgList& values, Dtype dtype) {
  std::string raw;
  for (const ir::Arg& item : values) {
    if (const double* real = item.get<double>()) {
      if (!is_floating(dtype)) throw InternalError("et.constant has a fraction among integers");
      append(raw, *real);
    } else if (const bool* truth = item.get<bool>()) {
      append_integer(raw, dtype, *truth ? 1 : 0);
    } else {
      const shape::Int* number = item.get<shape::Int>();
      if (number == nullptr || !number->constant())
        throw InternalError("et.constant has something other than numbers");
      if (is_floating(dtype)) {
        append(raw, static_cast<double>(*number->constant()));
      } else {
        append_integer(raw, dtype, *number->constant());
      }
    }
  }
  if (!is_floating(dtype) || dtype == Dtype::f64) return raw;
  std::string converted(values.size() * byte_size(dtype), '\0');
  weights::convert(Dtype::f64, std::as_bytes(std::span(raw)), dtype,
                   std::as_writable_bytes(std::span(converted)));
  return converted;
}

}  // namespace

void Emitter::node(std::size_t at, const ir::Node& node) {
  if (node.op == "et.view") return view(node);
  if (node.op == "et.delegate") return delegate(node);
  if (node.op == "et.constant") return constant(node);
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
  method_.delegates.push_back(number);
  method_.instructions.push_back({.kind = Instruction::Kind::delegate,
                                  .callee = method_.delegates.size() - 1,
                                  .args = std::move(args),
                                  .results = outs});
}

void Emitter::constant(const ir::Node& node) {
  const ir::Arg* values = node.find("values");
  if (values == nullptr || values->get<ir::ArgList>() == nullptr)
    throw InternalError("et.constant needs values");
  Tensor tensor = tensor_of(graph_.value(node.results[0]).tensor(), node.place);
  std::string bytes = bytes_of(*values->get<ir::ArgList>(), tensor.dtype);
  if (bytes.size() != byte_count(tensor.dtype, tensor.sizes))
    throw InternalError("et.constant has other values than its type wants");
  Storage storage{.kind = Storage::Kind::constant, .bytes = bytes.size()};
  storage.entry = data_.constant(tensor.dtype, tensor.sizes, std::move(bytes));
  define(node.results[0], table_.tensor_in(table_.add_storage(storage), std::move(tensor)));
}

}  // namespace modelport::executorch
