// Inputs, weights, outputs and the call of a program.
#include "backends/pt2/program_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/pt2/json_read.h"
#include "ir/verify.h"

namespace modelport::pt2 {
namespace {

/// A leaf that is a plain value; nothing for tensors and numbers that are computed.
std::optional<signature::Constant> constant_of(const Json& arg) {
  if (arg.contains("as_none")) return signature::Constant{};
  if (arg.contains("as_int")) return signature::Constant{read_integer(arg["as_int"])};
  if (arg.contains("as_float")) return signature::Constant{read_float(arg["as_float"])};
  if (arg.contains("as_bool")) return signature::Constant{arg["as_bool"].get<bool>()};
  if (arg.contains("as_string")) return signature::Constant{arg["as_string"].get<std::string>()};
  return std::nullopt;
}

/// Leaf names as the structure gives them, if they are as many as there are leaves and all differ.
std::vector<std::string> usable(std::vector<std::string> names, std::size_t count,
                                std::string_view stem) {
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  const bool good =
      names.size() == count && std::ranges::adjacent_find(sorted) == sorted.end() &&
      std::ranges::none_of(names, [](const std::string& name) { return name.empty(); });
  if (good) return names;
  names.clear();
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}.{}", stem, i));
  return names;
}

}  // namespace

ProgramReader::ProgramReader(const Json& program) : program_(program) {}

void ProgramReader::read() {
  const Json& version = program_.at("schema_version");
  if (version.at("major") != 8) {
    damaged(fmt::format("the program has the schema version {}, and 8 is read here",
                        version.at("major").dump()));
  }
  const Json& module = program_.at("graph_module");
  const Json& graph_json = module.at("graph");
  const Json& specs = module.at("signature");
  tables_ = {&graph_json.at("tensor_values"), &graph_json.at("sym_int_values"),
             &graph_json.at("sym_float_values"), &graph_json.at("sym_bool_values")};
  read_origin(module);
  read_symbols(program_.at("range_constraints"), graph_json.at("nodes"));
  read_call(module.at("module_call_graph"));
  read_inputs(graph_json, specs.at("input_specs"));
  read_nodes(graph_json.at("nodes"));
  read_outputs(graph_json.at("outputs"), specs.at("output_specs"));
  finish();
}

void ProgramReader::read_origin(const Json& module) {
  const auto metadata = module.find("metadata");
  if (metadata == module.end() || !metadata->contains("modelport")) return;
  origin_ = parse_origin((*metadata)["modelport"].get<std::string>());
  graph.name = origin_->graph;
  graph.guards = origin_->guards;
}

void ProgramReader::read_call(const Json& entries) {
  const auto root =
      std::ranges::find_if(entries, [](const Json& entry) { return entry.at("fqn") == ""; });
  if (root == entries.end() || !root->at("signature").is_object())
    damaged("the program does not say how it is called");
  const Json& call = root->at("signature");
  signature.input_structure = call.at("in_spec").get<std::string>();
  signature.output_structure = call.at("out_spec").get<std::string>();
  const auto names = call.find("forward_arg_names");
  std::vector<std::string> given;
  if (names != call.end() && names->is_array()) given = names->get<std::vector<std::string>>();
  input_names_ = input_names(parse_structure(signature.input_structure), given);
  signature.argument_names = input_names_.arguments;
  if (origin_) input_names_.leaves = origin_->inputs;
}

void ProgramReader::unsupported(std::string what, ir::PlaceId place,
                                std::vector<std::string> ways_out) {
  if (ways_out.empty())
    ways_out = {"capture the model with modelport.capture instead of torch.export"};
  const ir::Place& where = graph.place(place);
  problems_.add({.code = Code::unsupported_op,
                 .what = "a graph cannot hold " + std::move(what),
                 .where = where.where,
                 .module_path = where.module_path,
                 .notes = {},
                 .ways_out = std::move(ways_out)});
}

ir::ValueId ProgramReader::define(const std::string& name, ir::ValueId id) {
  if (!scope_.emplace(name, ir::Arg{id}).second)
    damaged("the program gives " + quote_text(name) + " twice");
  return id;
}

void ProgramReader::read_inputs(const Json& graph_json, const Json& specs) {
  const Json& inputs = graph_json.at("inputs");
  if (inputs.size() != specs.size())
    damaged("the program's inputs and their descriptions differ in number");
  const auto is_user = [](const Json& spec) {
    return spec.contains("user_input") || spec.contains("constant_input");
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(specs, is_user));
  const std::vector<std::string> names = usable(input_names_.leaves, count, "input");
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_user(specs[i])) {
      read_input(inputs[i], names[next++]);
      continue;
    }
    if (!specs[i].is_object() || specs[i].size() != 1)
      damaged("the program has an input of no kind");
    read_weight(specs[i].begin().key(), specs[i].begin().value());
  }
}

void ProgramReader::read_input(const Json& arg, const std::string& name) {
  if (const auto constant = constant_of(arg)) {
    signature.inputs.push_back({name, false, *constant});
    return;
  }
  const std::vector<std::string> names = result_names(Json::array({arg}));
  if (names.size() != 1)
    return unsupported("an input that is neither tensor nor number: " + quote_text(name));
  define(names[0], graph.add_input(name, result_type(names[0])));
  signature.inputs.push_back({name, true, {}});
}

void ProgramReader::read_weight(const std::string& kind, const Json& spec) {
  ir::WeightKind weight_kind = ir::WeightKind::parameter;
  std::string name;
  if (kind == "parameter") {
    name = spec.at("parameter_name").get<std::string>();
  } else if (kind == "buffer") {
    name = spec.at("buffer_name").get<std::string>();
    weight_kind = spec.at("persistent").get<bool>() ? ir::WeightKind::buffer
                                                    : ir::WeightKind::buffer_not_saved;
  } else if (kind == "tensor_constant") {
    name = spec.at("tensor_constant_name").get<std::string>();
    weight_kind = ir::WeightKind::constant;
  } else {
    return unsupported("an input of the kind " + quote_text(kind));
  }
  if (name.empty() || graph.find_weight(name) != nullptr)
    damaged("the program has the weight " + quote_text(name) + " twice");
  const std::string value = spec.at("arg").at("name").get<std::string>();
  define(value, graph.add_weight(name, tensor_type(tables_.tensors->at(value)), weight_kind));
}

void ProgramReader::read_outputs(const Json& outputs, const Json& specs) {
  if (outputs.size() != specs.size())
    damaged("the program's outputs and their descriptions differ in number");
  const auto is_user = [](const Json& spec) {
    return spec.contains("user_output") || spec.contains("loss_output");
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(specs, is_user));
  std::vector<std::string> names =
      origin_ ? origin_->outputs : output_names(parse_structure(signature.output_structure));
  names = usable(std::move(names), count, "output");
  std::size_t next = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!specs[i].is_object() || specs[i].size() != 1)
      damaged("the program has an output of no kind");
    // A graph gives what it would write into an input, where the program gives it too.
    if (specs[i].contains("user_input_mutation") && std::ranges::count(outputs, outputs[i]) > 1)
      continue;
    if (!is_user(specs[i])) {
      read_mutation(specs[i].begin().key(), specs[i].begin().value());
      continue;
    }
    const std::string& name = names[next++];
    if (const auto constant = constant_of(outputs[i])) {
      signature.outputs.push_back({name, false, *constant});
      continue;
    }
    auto value = argument(outputs[i], {});
    if (!value) continue;
    graph.outputs.push_back({name, std::move(*value)});
    signature.outputs.push_back({name, true, {}});
  }
}

void ProgramReader::read_mutation(const std::string& kind, const Json& spec) {
  const bool buffer = kind == "buffer_mutation";
  if (!buffer && kind != "parameter_mutation")
    return unsupported("an output of the kind " + quote_text(kind));
  const std::string name = spec.at(buffer ? "buffer_name" : "parameter_name").get<std::string>();
  const ir::ValueId* weight = graph.find_weight(name);
  const ir::ValueId* value = named(spec.at("arg")).get<ir::ValueId>();
  if (weight == nullptr || value == nullptr)
    damaged("the program writes to " + quote_text(name) + ", which it lacks");
  graph.mutations.push_back({*weight, *value});
}

/// As the graph had them, where all are there.
void ProgramReader::order_weights() {
  std::vector<ir::ValueId> ordered;
  for (const std::string& name : origin_->weights) {
    if (const ir::ValueId* id = graph.find_weight(name)) ordered.push_back(*id);
  }
  std::vector<ir::ValueId> have = graph.weights;
  std::vector<ir::ValueId> want = ordered;
  std::ranges::sort(have);
  std::ranges::sort(want);
  if (have == want) graph.weights = std::move(ordered);
}

void ProgramReader::finish() {
  problems_.throw_if_any();
  if (origin_) {
    order_weights();
    for (const Origin::Assumption& assumption : origin_->assumptions) {
      const auto value = scope_.find(assumption.value);
      const ir::ValueId* id = value == scope_.end() ? nullptr : value->second.get<ir::ValueId>();
      if (id == nullptr)
        damaged("the program assumes something of " + quote_text(assumption.value));
      graph.assumptions.push_back(
          {*id, assumption.expected,
           graph.add_place(assumption.place.where, assumption.place.module_path)});
    }
  }
  declare_dims();
  ir::drop_dead_nodes(graph);
  ir::verify(graph);
}

}  // namespace modelport::pt2
