// Rows as kernels: every parameter of the functional schema in its order, defaults filled in.
#include "ops/executorch/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/executorch/kernels.h"
#include "ops/rules/rules.h"

namespace modelport::ops::executorch {
namespace {

constexpr std::string_view kUndecided =
    "no kernel of the runtime goes by its name, and its row says nothing else";

/// "aten::add.out" as an operator of our IR.
std::string node_name(std::string_view kernel) {
  const std::size_t colons = kernel.find("::");
  return fmt::format("et.{}.{}", kernel.substr(0, colons), kernel.substr(colons + 2));
}

/// What a kernel finds in the tensor that it writes to, and does not take: its dtype and memory.
bool is_told_by_out(const Schema& schema, const Parameter& parameter) {
  if (schema.find("layout") == nullptr) return false;
  return parameter.name == "dtype" || parameter.name == "layout" || parameter.name == "device" ||
         parameter.name == "pin_memory";
}

/// "int[2]", "SymInt[]?"
bool is_list_of_integers(const Parameter& parameter) {
  return parameter.type.starts_with("int[") || parameter.type.starts_with("SymInt[");
}

/// How many numbers one stands for: 2 of "int[2]", else 1.
std::size_t list_length(const Parameter& parameter) {
  const char digit = parameter.type[parameter.type.find('[') + 1];
  return digit == ']' ? 1 : static_cast<std::size_t>(digit - '0');
}

}  // namespace

Lower::Lower(ir::Graph& graph, shape::Dims& dims, Storing storing)
    : Emitter(graph, dims,
              {.name = "executorch",
               .ways_out = {"export to onnx or pt2", "add a cell: docs/adding-an-operator.md"}}),
      storing_(storing) {}

std::string_view Lower::refusal(const OpDef& op) const {
  if (const auto* refused = std::get_if<Refuse>(&op.executorch)) return refused->reason;
  if (is_filled(op.executorch) || !kernel_of(op).empty()) return {};
  return kUndecided;
}

/// Kernels have no complex numbers; what is made of other rows leaves them to those.
Values Lower::lower_row(const OpDef& op) {
  if (has_complex()) {
    const auto* parts = std::get_if<Decompose>(&op.executorch);
    if (op.pairs.one == nullptr && op.pairs.many == nullptr && parts == nullptr)
      refuse("no rule for complex numbers");
    const Decompose& rule = op.pairs.one || op.pairs.many ? op.pairs : *parts;
    return rule.many != nullptr ? rule.many(*this) : Values{rule.one(*this)};
  }
  if (!is_filled(op.executorch)) {
    const std::string_view name = kernel_of(op);
    if (name.empty()) refuse(kUndecided);
    return kernel_with_own_operands(name);
  }
  const auto* stated = std::get_if<Direct>(&op.executorch);
  return lower_by(op.executorch, *this, [&](std::string_view name) {
    return kernel_with_own_operands(name, stated->promoted);
  });
}

bool Lower::has_complex() {
  bool found = false;
  const auto look = [&](const ir::Type& type) {
    const auto* tensor = std::get_if<ir::TensorType>(&type);
    found = found || (tensor != nullptr && is_complex(tensor->dtype));
  };
  for (const ir::Type& type : results()) look(type);
  for (const Parameter& parameter : schema_of(call().op()).parameters)
    ir::for_each_value(call().arg(parameter.name), [&](Value x) { look(graph().value(x).type); });
  return found;
}

Values Lower::kernel(std::string_view name, std::vector<ir::NamedArg> args) {
  return kernel(name, std::move(args), {results().begin(), results().end()});
}

Values Lower::kernel(std::string_view name, std::vector<ir::NamedArg> args,
                     std::vector<ir::Type> types) {
  if (!is_registered(name))
    throw InternalError(fmt::format("{} is no kernel of ExecuTorch's runtime", name));
  const ir::NodeId node =
      graph().add_node(node_name(name), std::move(args), std::move(types), place());
  return graph().node(node).results;
}

Values Lower::node(std::string_view name, std::vector<ir::NamedArg> args, ir::TensorType type) {
  const ir::NodeId node =
      graph().add_node(std::string(name), std::move(args), {std::move(type)}, place());
  return graph().node(node).results;
}

Values Lower::written_out(std::string_view name, std::vector<ir::NamedArg> args,
                          std::vector<ir::Type> types) {
  const ir::NodeId node =
      graph().add_node(std::string(name), std::move(args), std::move(types), place());
  return graph().node(node).results;
}

bool Lower::is_weight(Value x) const {
  return graph().value(x).origin == ir::Origin::weight && !state_.contains(x.index);
}

/// Four bits go two to a byte. The writer checks the types against the layout.
Lower::Quantized Lower::quantized(Value weight, const StoredAs& stored) {
  const auto [found, added] = quantized_.try_emplace({weight.index, stored.layout});
  if (!added) return found->second;
  const Int rows = shape(weight)[0];
  const Int columns = shape(weight)[1];
  const bool is_nibbles = stored.bits == 4;
  const bool by_blocks = stored.layout == "xnnpack_qbint4";  // bf16 scales, a row of them for a row
  const Int group = stored.group == 0 ? columns : Int(stored.group);
  const bool is_flat = !by_blocks && group == columns;
  const ir::TensorType codes{is_nibbles ? Dtype::u8 : Dtype::i8,
                             {rows, is_nibbles ? shape::floor_div(columns, 2) : columns}};
  Shape of_scales{rows};
  if (!is_flat) of_scales.push_back(shape::floor_div(columns, group));
  const Values made =
      written_out("et.quantize",
                  {{"weight", {weight}},
                   {"layout", {std::string(stored.layout)}},
                   {"bits", {Int(stored.bits)}},
                   {"group", {Int(stored.group)}}},
                  {codes, ir::TensorType{by_blocks ? Dtype::bf16 : Dtype::f32, of_scales}});
  found->second = {made[0], made[1]};
  return found->second;
}

Values Lower::kernel_with_own_operands(std::string_view name, bool promoted) {
  const Schema& schema = schema_of(call().op());
  std::vector<ir::NamedArg> args;
  for (const Parameter& parameter : schema.parameters) {
    if (is_told_by_out(schema, parameter)) continue;
    args.push_back({parameter.name, operand(parameter, promoted)});
  }
  return kernel(name, std::move(args));
}

ir::Arg Lower::operand(const Parameter& parameter, bool promoted) {
  const ir::Arg& own = call().arg(parameter.name);
  if (is_list_of_integers(parameter)) {
    // One number stands for a list of it; axes of a tensor without any are none.
    if (const Int* number = own.get<Int>())
      return {ir::ArgList(list_length(parameter), ir::Arg{*number})};
    const Value self = parameter.name == "dim" ? tensor("self") : kNoValue;
    if (self != kNoValue && rank(self) == 0 && !own.is_none()) return {ir::ArgList{}};
    return own;
  }
  const Int* whole = parameter.type.starts_with("Scalar") ? own.get<Int>() : nullptr;
  // Kernels refuse a number that the type does not hold; torch lets it wrap around.
  if (whole != nullptr && whole->constant() && gives_integers())
    return {Int(emit::wrapped(*whole->constant(), result().dtype))};
  if (!parameter.type.starts_with("Tensor") || own.is_none()) return own;
  const Value* value = own.get<Value>();
  if (value == nullptr) return parameter.type == "Tensor" ? as_tensor(own) : own;
  if (const auto smaller = type_beside(parameter, *value))
    return {call("aten._to_copy", {*value}, {{"dtype", *smaller}})};
  if (!promoted || dtype(*value) == result().dtype) return own;
  return {call("aten._to_copy", {*value}, {{"dtype", result().dtype}})};
}

bool Lower::gives_integers() {
  const auto* type = results().empty() ? nullptr : std::get_if<ir::TensorType>(&results()[0]);
  return type != nullptr && is_integral(type->dtype);
}

/// An integer without axes takes the type of the integers beside it that have some, and wraps
/// around in it; the runtime's kernels would take the larger type.
std::optional<Dtype> Lower::type_beside(const Parameter& parameter, Value value) {
  constexpr std::array<std::string_view, 5> kOperands{"self", "other", "exponent", "min", "max"};
  const auto is_operand = [&](std::string_view name) {
    return std::ranges::find(kOperands, name) != kOperands.end();
  };
  if (!is_operand(parameter.name) || rank(value) != 0 || !is_integral(dtype(value)))
    return std::nullopt;
  std::optional<Dtype> largest;
  for (const Parameter& beside : schema_of(call().op()).parameters) {
    if (!beside.type.starts_with("Tensor") || !is_operand(beside.name)) continue;
    const Value other = tensor(beside.name);
    if (other == kNoValue || rank(other) == 0) continue;
    if (!is_integral(dtype(other))) return std::nullopt;
    largest = largest ? promote(*largest, dtype(other)) : dtype(other);
  }
  // A quotient takes the number as it is.
  if (!largest || *largest == dtype(value) || is_floating(result().dtype)) return std::nullopt;
  return largest;
}

/// Torch lets a number stand for a tensor and gives it the type of the tensors beside it, unless it
/// is of a higher kind (bool, integer, real).
ir::Arg Lower::as_tensor(const ir::Arg& number) {
  const bool truth = number.get<bool>() || number.get<shape::Bool>();
  const bool integer = number.get<Int>() != nullptr;
  Dtype dtype = truth ? Dtype::boolean : integer ? Dtype::i64 : Dtype::f32;
  for (const Parameter& parameter : schema_of(call().op()).parameters) {
    const Value other = parameter.type == "Tensor" ? tensor(parameter.name) : kNoValue;
    if (other == kNoValue) continue;
    const Dtype beside = this->dtype(other);
    if (is_floating(beside) || truth || (integer && beside != Dtype::boolean)) dtype = beside;
  }
  // A quotient: the number goes over as it is.
  if (integer && is_integral(dtype) && is_floating(result().dtype)) dtype = result().dtype;
  if (const bool* plain = number.get<bool>()) return {this->number(std::int64_t{*plain}, dtype)};
  if (const double* plain = number.get<double>()) return {this->number(*plain, dtype)};
  if (const Int* plain = number.get<Int>(); plain != nullptr && plain->constant())
    return {this->number(*plain->constant(), dtype)};
  return {call("aten.scalar_tensor", {number}, {{"dtype", dtype}})};
}

Value Lower::add_constant(ir::TensorType type, std::vector<ir::NamedArg> contents) {
  const ir::NodeId node =
      graph().add_node("et.constant", std::move(contents), {std::move(type)}, place());
  return graph().node(node).results[0];
}

}  // namespace modelport::ops::executorch
