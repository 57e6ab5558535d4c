// Arguments by name, with conversions that a rule can rely on, and errors that name the operator's
// operands.
#include "ops/table/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/text.h"
#include "ops/table/op.h"

namespace modelport::ops {
namespace {

const ir::Arg kNone{};

const ir::TensorType* tensor_type(const ir::Graph& graph, const ir::Arg& arg) {
  const ir::ValueId* id = arg.get<ir::ValueId>();
  if (id == nullptr) return nullptr;
  return std::get_if<ir::TensorType>(&graph.value(*id).type);
}

std::optional<Int> as_integer(const ir::Graph& graph, const ir::Arg& arg) {
  if (const Int* value = arg.get<Int>()) return *value;
  if (const bool* value = arg.get<bool>()) return Int(*value ? 1 : 0);
  if (const ir::ValueId* id = arg.get<ir::ValueId>()) {
    const auto* scalar = std::get_if<ir::ScalarType>(&graph.value(*id).type);
    if (scalar == nullptr) return std::nullopt;
    if (const Int* symbol = std::get_if<Int>(&scalar->symbol)) return *symbol;
  }
  return std::nullopt;
}

}  // namespace

Call::Call(const OpDef& op, std::span<const ir::NamedArg> args, Site site)
    : op_(op), schema_(schema_of(op)), args_(args), site_(std::move(site)) {
  for (const ir::NamedArg& given : args_) {
    require(schema_.find(given.name) != nullptr,
            fmt::format("there is no argument '{}'", given.name));
  }
}

const ir::Arg& Call::arg(std::string_view name) const {
  for (const ir::NamedArg& given : args_) {
    if (given.name == name) return given.arg;
  }
  const Parameter* parameter = schema_.find(name);
  if (parameter == nullptr) {
    throw InternalError(fmt::format("the rule of {} asks for an argument '{}'", op_.name, name));
  }
  return parameter->has_default ? parameter->default_value : kNone;
}

const ir::TensorType& Call::tensor(std::string_view name) const {
  const ir::TensorType* type = tensor_type(site_.graph, arg(name));
  if (type == nullptr) fail(fmt::format("'{}' must be a tensor", name));
  return *type;
}

bool Call::is_tensor(std::string_view name) const {
  return tensor_type(site_.graph, arg(name)) != nullptr;
}

std::optional<Dtype> Call::number_dtype(std::string_view name) const {
  const ir::Arg& value = arg(name);
  if (value.get<bool>() != nullptr || value.get<shape::Bool>() != nullptr) return Dtype::boolean;
  if (value.get<Int>() != nullptr) return Dtype::i64;
  if (value.get<double>() != nullptr || value.get<shape::Real>() != nullptr) return Dtype::f32;
  const ir::ValueId* id = value.get<ir::ValueId>();
  if (id == nullptr) return std::nullopt;
  const auto* scalar = std::get_if<ir::ScalarType>(&site_.graph.value(*id).type);
  if (scalar == nullptr) return std::nullopt;
  constexpr std::array kByAlternative{Dtype::i64, Dtype::f32, Dtype::boolean};
  return kByAlternative[scalar->symbol.index()];
}

std::vector<const ir::TensorType*> Call::tensors(std::string_view name) const {
  const ir::ArgList* list = arg(name).get<ir::ArgList>();
  if (list == nullptr) fail(fmt::format("'{}' must be a list of tensors", name));
  std::vector<const ir::TensorType*> types;
  for (const ir::Arg& item : *list) {
    types.push_back(tensor_type(site_.graph, item));
    require(types.back() != nullptr || item.is_none(),
            fmt::format("'{}' must hold tensors only", name));
  }
  return types;
}

Int Call::integer(std::string_view name) const {
  const auto value = as_integer(site_.graph, arg(name));
  if (!value) fail(fmt::format("'{}' must be an integer", name));
  return *value;
}

std::vector<Int> Call::ints(std::string_view name) const {
  const ir::ArgList* list = arg(name).get<ir::ArgList>();
  if (list == nullptr) return {integer(name)};
  std::vector<Int> values;
  for (const ir::Arg& item : *list) {
    const auto value = as_integer(site_.graph, item);
    if (!value) fail(fmt::format("'{}' must hold integers only", name));
    values.push_back(*value);
  }
  return values;
}

std::optional<std::vector<Int>> Call::optional_ints(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return ints(name);
}

std::optional<Int> Call::optional_integer(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  return integer(name);
}

bool Call::flag(std::string_view name) const {
  const ir::Arg& value = arg(name);
  if (const bool* flag = value.get<bool>()) return *flag;
  if (const Int* number = value.get<Int>(); number != nullptr && number->is_constant()) {
    return *number->constant() != 0;
  }
  if (!value.is_none()) fail(fmt::format("'{}' must be true or false", name));
  return false;
}

std::int64_t Call::number(std::string_view name) const {
  const Int value = integer(name);
  if (const auto constant = value.constant()) return *constant;
  return site_.dims.pin(value, site_.place);
}

std::optional<Dtype> Call::dtype(std::string_view name) const {
  const ir::Arg& value = arg(name);
  if (value.is_none()) return std::nullopt;
  const Dtype* dtype = value.get<Dtype>();
  if (dtype == nullptr) fail(fmt::format("'{}' must be a dtype", name));
  return *dtype;
}

std::string_view Call::string(std::string_view name) const {
  const ir::Arg& value = arg(name);
  if (value.is_none()) return {};
  const std::string* text = value.get<std::string>();
  if (text == nullptr) fail(fmt::format("'{}' must be a string", name));
  return *text;
}

bool Call::equal(const Int& a, const Int& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  return site_.dims.settle_equal(a, b, site_.place);
}

bool Call::at_least(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant()) return *a.constant() >= *b.constant();
  return site_.dims.settle(shape::Bool::compare(shape::Compare::ge, a, b), site_.place);
}

Int Call::unknown_size(std::size_t result, std::size_t axis, shape::Range range) {
  const bool seen = result < site_.observed.size() && axis < site_.observed[result].size();
  const std::int64_t hint =
      seen ? site_.observed[result][axis] : std::max<std::int64_t>(range.lo, 0);
  return site_.dims.fresh("u", hint, range);
}

void Call::fail(std::string_view what) const {
  Diagnostic problem;
  problem.code = Code::bad_operands;
  problem.what = fmt::format("{}: {}", op_.name, what);
  problem.where = site_.place.where;
  problem.module_path = site_.place.module_path;
  problem.ways_out = {"capture with dynamic=False, or with fixed sizes for the axes named above"};
  const auto note = [&](std::string_view name, const ir::Arg& arg) {
    if (const ir::TensorType* type = tensor_type(site_.graph, arg)) {
      problem.notes.push_back(fmt::format("{}: {}", name, ir::print(ir::Type(*type))));
    }
  };
  for (const ir::NamedArg& given : args_) {
    note(given.name, given.arg);
    if (const ir::ArgList* list = given.arg.get<ir::ArgList>()) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        note(fmt::format("{}[{}]", given.name, i), (*list)[i]);
      }
    }
  }
  throw ExportError(std::move(problem));
}

Results infer(const OpDef& op, std::span<const ir::NamedArg> args, Call::Site site) {
  Call call(op, args, site);
  Results results = op.infer(call);
  // A rule may have unified symbols that it used before.
  if (!site.dims.replacements().empty()) {
    for (ir::Type& type : results) {
      auto* tensor = std::get_if<ir::TensorType>(&type);
      if (tensor == nullptr) continue;
      for (Int& size : tensor->shape) size = site.dims.simplify(size);
    }
  }
  return results;
}

}  // namespace modelport::ops
