// Reads operator schemas: parameters are split at top-level commas, alias annotations are kept
// apart from types, list lengths are dropped.
#include "ops/table/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "ops/table/split.h"

namespace modelport::ops {
namespace {

[[noreturn]] void malformed(std::string_view text, std::string_view why) {
  throw InternalError(fmt::format("schema {}: {}", text, why));
}

/// "Tensor(a!)" is "Tensor", "SymInt[2]?" is "SymInt[]?".
std::string plain_type(std::string_view text) {
  std::string type;
  int round = 0;
  bool in_length = false;
  for (const char c : text) {
    if (c == '(') ++round;
    if (c == ']') in_length = false;
    if (round == 0 && !in_length) type += c;
    if (c == '[') in_length = true;
    if (c == ')') --round;
  }
  return type;
}

/// "a" of "Tensor(a)", "Tensor(a)[]" and "Tensor(a -> *)".
std::string alias_in(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return {};
  return std::string(text.substr(open + 1, text.find_first_of(" !)", open) - open - 1));
}

/// Torch prints the default of a ScalarType parameter as the number of its enum.
Dtype torch_dtype(std::int64_t number) {
  switch (number) {
    case 0:
      return Dtype::u8;
    case 1:
      return Dtype::i8;
    case 2:
      return Dtype::i16;
    case 3:
      return Dtype::i32;
    case 4:
      return Dtype::i64;
    case 5:
      return Dtype::f16;
    case 6:
      return Dtype::f32;
    case 7:
      return Dtype::f64;
    case 9:
      return Dtype::c64;
    case 10:
      return Dtype::c128;
    case 11:
      return Dtype::boolean;
    case 15:
      return Dtype::bf16;
    default:
      throw InternalError(fmt::format("schema with a dtype number {}", number));
  }
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> real_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size()) return std::nullopt;
  return value;
}

ir::Arg parse_default(std::string_view type, std::string_view text) {
  if (text == "None") return {};
  if (text == "True") return {true};
  if (text == "False") return {false};
  if (text.front() == '"' || text.front() == '\'')
    return {std::string(text.substr(1, text.size() - 2))};
  if (text.front() == '[') {
    ir::ArgList items;
    for (std::string_view item : split_outside(text.substr(1, text.size() - 2), ",")) {
      items.push_back(parse_default(type, item));
    }
    return {std::move(items)};
  }
  const bool real = type.starts_with("float");
  if (const auto value = whole_number(text); value && !real) {
    if (type.starts_with("ScalarType")) return {torch_dtype(*value)};
    return {shape::Int(*value)};
  }
  if (const auto value = real_number(text)) return {*value};
  return {std::string(text)};  // a memory format, a layout, a reduction by name
}

Parameter parse_parameter(std::string_view text, std::string_view schema) {
  Parameter parameter;
  const std::size_t equals = find_outside(text, "=");
  const std::string_view left = trim(text.substr(0, equals));
  const std::size_t space = left.rfind(' ');
  if (space == std::string_view::npos) malformed(schema, "a parameter without a name");
  parameter.type = plain_type(trim(left.substr(0, space)));
  parameter.alias = alias_in(left.substr(0, space));
  parameter.name = left.substr(space + 1);
  if (equals != std::string_view::npos) {
    const std::string_view value = trim(text.substr(equals + 1));
    if (value.empty()) malformed(schema, "an empty default");
    parameter.has_default = true;
    parameter.default_value = parse_default(parameter.type, value);
  }
  return parameter;
}

void parse_returns(std::string_view text, Schema& schema) {
  text = trim(text);
  const auto add = [&](std::string_view type) {
    schema.returns.push_back(plain_type(type));
    schema.return_aliases.push_back(alias_in(type));
  };
  if (!text.starts_with('(')) return add(text);
  for (std::string_view part : split_outside(text.substr(1, text.size() - 2), ","))
    add(part.substr(0, find_outside(part, " ")));
}

}  // namespace

const Parameter* Schema::find(std::string_view name) const {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

const Parameter* Schema::viewed() const {
  for (const Parameter& parameter : parameters) {
    if (!parameter.alias.empty() &&
        std::ranges::find(return_aliases, parameter.alias) != return_aliases.end())
      return &parameter;
  }
  return nullptr;
}

Schema parse_schema(std::string_view text) {
  const std::size_t arrow = find_outside(text, "->");
  if (!text.starts_with('(') || arrow == std::string_view::npos) malformed(text, "no result");
  const std::string_view bracketed = trim(text.substr(0, arrow));
  if (bracketed.back() != ')') malformed(text, "no closing bracket");
  Schema schema;
  bool keyword_only = false;
  for (std::string_view part : split_outside(bracketed.substr(1, bracketed.size() - 2), ",")) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    schema.parameters.push_back(parse_parameter(part, text));
    schema.parameters.back().keyword_only = keyword_only;
  }
  parse_returns(text.substr(arrow + 2), schema);
  return schema;
}

const Schema& schema_of(const OpDef& op) {
  // Keyed by the text, so that rows made by tests may come and go.
  static std::shared_mutex mutex;
  static std::map<std::string, std::unique_ptr<const Schema>, std::less<>> parsed;
  {
    std::shared_lock lock(mutex);
    if (const auto found = parsed.find(op.schema); found != parsed.end()) return *found->second;
  }
  auto schema = std::make_unique<const Schema>(parse_schema(op.schema));
  std::unique_lock lock(mutex);
  return *parsed.emplace(op.schema, std::move(schema)).first->second;
}

}  // namespace modelport::ops
