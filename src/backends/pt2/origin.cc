// The origin of a program as JSON.
#include "backends/pt2/origin.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "backends/pt2/json_read.h"
#include "base/json.h"
#include "signature/line_json.h"

namespace modelport::pt2 {
namespace {

constexpr std::array<std::pair<shape::Guard::Effect, std::string_view>, 4> kEffects{{
    {shape::Guard::Effect::unified, "unified"},
    {shape::Guard::Effect::pinned, "pinned"},
    {shape::Guard::Effect::bounded, "bounded"},
    {shape::Guard::Effect::kept, "kept"},
}};

using signature::line_json;
using signature::parse_line;

Json range_json(const shape::Range& range) { return {range.lo, range.hi}; }

shape::Range parse_range(const Json& json) {
  return {read_integer(json.at(0)), read_integer(json.at(1))};
}

Json guard_json(const shape::Guard& guard) {
  std::string_view effect;
  for (const auto& [known, name] : kEffects) {
    if (known == guard.effect) effect = name;
  }
  return {{"condition", shape::print(guard.condition)},
          {"effect", effect},
          {"where", line_json(guard.where)},
          {"module", guard.module_path}};
}

shape::Guard parse_guard(const Json& json) {
  shape::Guard guard;
  guard.condition = shape::parse_bool(json.at("condition").get<std::string>());
  for (const auto& [effect, name] : kEffects) {
    if (json.at("effect") == name) guard.effect = effect;
  }
  guard.where = parse_line(json.at("where"));
  guard.module_path = json.at("module").get<std::string>();
  return guard;
}

/// Infinities and NaN are no JSON numbers.
Json expected_json(const std::variant<bool, std::int64_t, double>& expected) {
  if (const bool* truth = std::get_if<bool>(&expected)) return *truth;
  if (const auto* integer = std::get_if<std::int64_t>(&expected)) return *integer;
  const double real = std::get<double>(expected);
  if (std::isfinite(real)) return real;
  return std::isnan(real) ? "nan" : real > 0 ? "inf" : "-inf";
}

std::variant<bool, std::int64_t, double> parse_expected(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return read_integer(json);
  if (json.is_number()) return json.get<double>();
  return json == "nan" ? std::nan("") : json == "inf" ? HUGE_VAL : -HUGE_VAL;
}

shape::Dim parse_dim(const Json& json) {
  shape::Dim dim;
  dim.name = json.at("name").get<std::string>();
  dim.range = parse_range(json.at("range"));
  dim.declared = parse_range(json.at("declared"));
  dim.hint = read_integer(json.at("hint"));
  dim.from_data = json.at("from_data").get<bool>();
  if (json.contains("lo_where")) dim.lo_where = parse_line(json.at("lo_where"));
  if (json.contains("hi_where")) dim.hi_where = parse_line(json.at("hi_where"));
  return dim;
}

Origin read(const Json& json) {
  Origin origin;
  origin.graph = json.at("graph").get<std::string>();
  origin.inputs = json.at("inputs").get<std::vector<std::string>>();
  origin.outputs = json.at("outputs").get<std::vector<std::string>>();
  origin.weights = json.at("weights").get<std::vector<std::string>>();
  origin.symbols = json.at("symbols").get<std::vector<std::pair<std::string, std::string>>>();
  for (const Json& dim : json.at("dims")) origin.dims.push_back(parse_dim(dim));
  for (const Json& guard : json.at("guards")) origin.guards.push_back(parse_guard(guard));
  for (const Json& item : json.at("assumptions")) {
    origin.assumptions.push_back(
        {item.at("value").get<std::string>(),
         parse_expected(item.at("expected")),
         {parse_line(item.at("where")), item.at("module").get<std::string>()}});
  }
  return origin;
}

}  // namespace

std::string print(const Origin& origin) {
  Json dims = Json::array();
  for (const shape::Dim& dim : origin.dims) {
    dims.push_back({{"name", dim.name},
                    {"range", range_json(dim.range)},
                    {"declared", range_json(dim.declared)},
                    {"hint", dim.hint},
                    {"from_data", dim.from_data},
                    {"lo_where", line_json(dim.lo_where)},
                    {"hi_where", line_json(dim.hi_where)}});
  }
  Json guards = Json::array();
  for (const shape::Guard& guard : origin.guards) guards.push_back(guard_json(guard));
  Json assumptions = Json::array();
  for (const Origin::Assumption& assumption : origin.assumptions) {
    assumptions.push_back({{"value", assumption.value},
                           {"expected", expected_json(assumption.expected)},
                           {"where", line_json(assumption.place.where)},
                           {"module", assumption.place.module_path}});
  }
  const Json json = {{"version", 1},
                     {"graph", origin.graph},
                     {"inputs", origin.inputs},
                     {"outputs", origin.outputs},
                     {"weights", origin.weights},
                     {"symbols", origin.symbols},
                     {"dims", std::move(dims)},
                     {"guards", std::move(guards)},
                     {"assumptions", std::move(assumptions)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Origin parse_origin(std::string_view text) {
  const Json json = parse_json(text, {.name = "the program's metadata"});
  try {
    return read(json);
  } catch (const Json::exception& error) {
    throw ExportError(Diagnostic{.code = Code::bad_file,
                                 .what = fmt::format("the program's metadata: {}", error.what()),
                                 .where = {},
                                 .module_path = {},
                                 .notes = {},
                                 .ways_out = {"write the .pt2 file again"}});
  }
}

}  // namespace modelport::pt2
