// Arguments of operators, by the kinds that torch's schema knows.
#include <fmt/format.h>

#include <algorithm>

#include "backends/pt2/json_read.h"
#include "backends/pt2/program_reader.h"
#include "backends/pt2/torch_numbers.h"

namespace modelport::pt2 {
namespace {

/// The one key of a union; empty for what is none.
std::string kind_of(const Json& json) {
  return json.is_object() && json.size() == 1 ? json.begin().key() : "";
}

std::string device_text(const Json& json) {
  std::string device = json.at("type").get<std::string>();
  const auto index = json.find("index");
  if (index != json.end() && index->is_number_integer())
    device += fmt::format(":{}", read_integer(*index));
  return device;
}

std::string memory_format(const Json& json) {
  for (const auto& [name, number] : kMemoryFormats) {
    if (json == number) return std::string(name);
  }
  damaged("the program has an unknown memory format");
}

ir::Arg dtype_arg(const Json& json) {
  const auto dtype = dtype_of_scalar_type(read_integer(json));
  if (!dtype) damaged(fmt::format("the program names the unknown dtype {}", json.dump()));
  return {*dtype};
}

/// Left out in a graph: where a tensor lies and how is the runtime's business, unless an operator
/// is about that.
bool is_left_out(const std::string& name, const Json& arg, const ops::Parameter* parameter) {
  const std::string kind = kind_of(arg);
  if (kind == "as_layout" || name == "pin_memory") return true;
  const bool optional = parameter == nullptr || parameter->has_default;
  return kind == "as_device" && optional;
}

}  // namespace

const ir::Arg& ProgramReader::named(const Json& json) {
  const auto& name = json.at("name").get_ref<const std::string&>();
  const auto found = scope_.find(name);
  if (found == scope_.end())
    damaged("the program uses " + quote_text(name) + " before anything gives it");
  return found->second;
}

/// A number of a list: plain under `plain`, or the name of one that is computed.
ir::Arg ProgramReader::number(const Json& json, std::string_view plain) {
  if (json.contains("as_name")) return number_value(json["as_name"].get<std::string>());
  const Json& value = json.at(std::string(plain));
  if (plain == "as_int") return {shape::Int(read_integer(value))};
  if (plain == "as_bool") return {value.get<bool>()};
  return {read_float(value)};
}

std::optional<ir::Arg> ProgramReader::argument(const Json& arg, ir::PlaceId place) {
  const std::string kind = kind_of(arg);
  if (kind.empty()) damaged("the program has an argument of no kind");
  const Json& json = arg.begin().value();
  const auto integer = [](const Json& x) -> ir::Arg { return {shape::Int(read_integer(x))}; };
  const auto truth = [](const Json& x) -> ir::Arg { return {x.get<bool>()}; };
  const auto text = [](const Json& x) -> ir::Arg { return {x.get<std::string>()}; };
  const auto real = [](const Json& x) -> ir::Arg { return {read_float(x)}; };
  const auto tensor = [&](const Json& x) -> ir::Arg { return named(x); };
  const auto optional_tensor = [&](const Json& x) -> ir::Arg {
    return x.contains("as_tensor") ? named(x["as_tensor"]) : ir::Arg{};
  };
  if (kind == "as_none") return ir::Arg{};
  if (kind == "as_tensor") return tensor(json);
  if (kind == "as_tensors") return list(json, tensor);
  if (kind == "as_optional_tensor") return optional_tensor(json);
  if (kind == "as_optional_tensors") return list(json, optional_tensor);
  if (kind == "as_int") return integer(json);
  if (kind == "as_ints") return list(json, integer);
  if (kind == "as_float") return real(json);
  if (kind == "as_floats") return list(json, real);
  if (kind == "as_bool") return truth(json);
  if (kind == "as_bools") return list(json, truth);
  if (kind == "as_string") return text(json);
  if (kind == "as_strings") return list(json, text);
  if (kind == "as_sym_int") return number(json, "as_int");
  if (kind == "as_sym_ints") return list(json, [&](const Json& x) { return number(x, "as_int"); });
  if (kind == "as_sym_float") return number(json, "as_float");
  if (kind == "as_sym_floats")
    return list(json, [&](const Json& x) { return number(x, "as_float"); });
  if (kind == "as_sym_bool") return number(json, "as_bool");
  if (kind == "as_sym_bools")
    return list(json, [&](const Json& x) { return number(x, "as_bool"); });
  if (kind == "as_scalar_type") return dtype_arg(json);
  if (kind == "as_memory_format") return ir::Arg{memory_format(json)};
  if (kind == "as_device") return ir::Arg{device_text(json)};
  unsupported(fmt::format("an argument of the kind {}", quote_text(kind)), place);
  return std::nullopt;
}

std::vector<ir::NamedArg> ProgramReader::arguments(const std::string& op, const Json& inputs,
                                                   ir::PlaceId place) {
  const ops::OpDef* row = ops::find_op(op);
  const ops::Schema* schema = row == nullptr ? nullptr : &ops::schema_of(*row);
  std::vector<ir::NamedArg> args;
  for (const Json& input : inputs) {
    const auto& name = input.at("name").get_ref<const std::string&>();
    const Json& json = input.at("arg");
    const ops::Parameter* parameter = schema == nullptr ? nullptr : schema->find(name);
    if (is_left_out(name, json, parameter)) continue;
    auto arg = argument(json, place);
    if (!arg) continue;
    if (std::ranges::find(args, name, &ir::NamedArg::name) != args.end()) {
      damaged(fmt::format("{} has two arguments {}", op, quote_text(name)));
    }
    if (parameter != nullptr && parameter->type.starts_with("float")) {
      if (const auto* whole = arg->get<shape::Int>(); whole != nullptr && whole->is_constant()) {
        arg = ir::Arg{static_cast<double>(*whole->constant())};
      }
    }
    const bool has_default = parameter != nullptr && parameter->has_default;
    const bool is_default = has_default ? *arg == parameter->default_value : arg->is_none();
    if (!is_default) args.push_back({name, std::move(*arg)});
  }
  return args;
}

}  // namespace modelport::pt2
