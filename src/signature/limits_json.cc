// Limits as JSON: {"version": 1, "inputs": [...], "dims": [...], "conditions": [...], ...}.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "signature/limits.h"
#include "signature/line_json.h"

namespace modelport::signature {
namespace {

[[noreturn]] void damaged(std::string_view what) {
  throw ExportError(
      Diagnostic{.code = Code::bad_file,
                 .what = fmt::format("the limits in the file cannot be read: {}", what),
                 .ways_out = {"export it again"}});
}

Dtype read_dtype(const std::string& text) {
  const auto dtype = parse_dtype(text);
  if (!dtype) damaged("there is no type " + quote_text(text));
  return *dtype;
}

Json end_json(std::int64_t end) {
  const bool open = end == shape::Range::kUnbounded || end == shape::Range::kUnboundedBelow;
  return open ? Json() : Json(end);
}

/// A number that is finite or not, a text, a truth or nothing.
Json constant_json(const Constant& constant) {
  if (const auto* truth = std::get_if<bool>(&constant.value)) return *truth;
  if (const auto* integer = std::get_if<std::int64_t>(&constant.value)) return *integer;
  if (const auto* text = std::get_if<std::string>(&constant.value)) return *text;
  if (const auto* real = std::get_if<double>(&constant.value)) {
    if (std::isfinite(*real)) return *real;
    return {{"float", std::isnan(*real) ? "nan" : *real > 0 ? "inf" : "-inf"}};
  }
  return {};
}

Constant parse_constant(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_boolean()) return {json.get<bool>()};
  if (json.is_string()) return {json.get<std::string>()};
  if (json.is_number_integer()) return {parse_integer(json)};
  if (json.is_number()) return {json.get<double>()};
  const std::string text = json.at("float").get<std::string>();
  return {text == "nan" ? std::nan("") : text == "inf" ? HUGE_VAL : -HUGE_VAL};
}

Json input_json(const LimitedInput& input) {
  Json sizes = Json::array();
  for (const shape::Int& size : input.shape) sizes.push_back(shape::print(size));
  return {{"name", input.name}, {"dtype", name(input.dtype)}, {"shape", std::move(sizes)}};
}

LimitedInput parse_input(const Json& json) {
  LimitedInput input;
  input.name = json.at("name").get<std::string>();
  input.dtype = read_dtype(json.at("dtype").get<std::string>());
  for (const Json& size : json.at("shape"))
    input.shape.push_back(shape::parse_int(size.get<std::string>()));
  return input;
}

Json dim_json(const shape::Dim& dim) {
  Json json = {{"name", dim.name}, {"lo", end_json(dim.range.lo)}, {"hi", end_json(dim.range.hi)}};
  if (dim.lo_where.known()) json["lo_where"] = line_json(dim.lo_where);
  if (dim.hi_where.known()) json["hi_where"] = line_json(dim.hi_where);
  return json;
}

shape::Dim parse_dim(const Json& json) {
  shape::Dim dim;
  dim.name = json.at("name").get<std::string>();
  if (!json.at("lo").is_null()) dim.range.lo = parse_integer(json.at("lo"));
  if (!json.at("hi").is_null()) dim.range.hi = parse_integer(json.at("hi"));
  if (json.contains("lo_where")) dim.lo_where = parse_line(json.at("lo_where"));
  if (json.contains("hi_where")) dim.hi_where = parse_line(json.at("hi_where"));
  return dim;
}

Limits read(const Json& json) {
  Limits limits;
  for (const Json& item : json.at("inputs")) limits.inputs.push_back(parse_input(item));
  for (const Json& item : json.at("dims")) limits.dims.push_back(parse_dim(item));
  for (const Json& item : json.at("conditions")) {
    limits.conditions.push_back({shape::parse_bool(item.at("condition").get<std::string>()),
                                 shape::Guard::Effect::kept, parse_line(item.at("where")),
                                 item.at("module").get<std::string>()});
  }
  for (const Json& item : json.at("frozen"))
    limits.frozen.push_back({item.at(0).get<std::string>(), parse_constant(item.at(1))});
  for (const Json& item : json.at("checks")) {
    limits.checks.push_back({item.at("output").get<std::string>(),
                             item.at("what").get<std::string>(), parse_line(item.at("where")),
                             item.at("module").get<std::string>()});
  }
  for (const Json& item : json.at("state"))
    limits.state.push_back({item.at(0).get<std::string>(), item.at(1).get<std::string>()});
  return limits;
}

}  // namespace

Json line_json(const SourceLine& where) {
  return {{"file", where.file}, {"line", where.line}, {"function", where.function}};
}

SourceLine parse_line(const Json& json) {
  const std::int64_t line = std::clamp<std::int64_t>(parse_integer(json.at("line")), 0, 1 << 30);
  return {json.at("file").get<std::string>(), static_cast<int>(line),
          json.at("function").get<std::string>()};
}

std::int64_t parse_integer(const Json& json) {
  if (const std::optional<std::int64_t> number = integer_in(json)) return *number;
  throw Json::type_error::create(302, quote_text(json.dump()) + " is no integer of 64 bits", &json);
}

std::string to_json(const Limits& limits) {
  Json json = {{"version", 1},
               {"inputs", Json::array()},
               {"dims", Json::array()},
               {"conditions", Json::array()},
               {"frozen", Json::array()},
               {"checks", Json::array()},
               {"state", Json::array()}};
  for (const LimitedInput& input : limits.inputs) json["inputs"].push_back(input_json(input));
  for (const shape::Dim& dim : limits.dims) json["dims"].push_back(dim_json(dim));
  for (const shape::Guard& guard : limits.conditions) {
    json["conditions"].push_back({{"condition", shape::print(guard.condition)},
                                  {"where", line_json(guard.where)},
                                  {"module", guard.module_path}});
  }
  for (const FrozenArgument& frozen : limits.frozen)
    json["frozen"].push_back(Json::array({frozen.name, constant_json(frozen.value)}));
  for (const DataCheck& check : limits.checks) {
    json["checks"].push_back({{"output", check.output},
                              {"what", check.what},
                              {"where", line_json(check.where)},
                              {"module", check.module_path}});
  }
  for (const StateSlot& slot : limits.state)
    json["state"].push_back(Json::array({slot.input, slot.output}));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Limits parse_limits(std::string_view text) {
  const Json json =
      parse_json(text, {.name = "the limits in the file", .ways_out = {"export it again"}});
  try {
    return read(json);
  } catch (const Json::exception& error) {
    damaged(error.what());
  } catch (const ExportError& error) {  // an expression that does not parse
    damaged(error.diagnostics().front().what);
  }
}

}  // namespace modelport::signature
