// Outputs, writes to buffers, the structure of the call, and what our own reader wants to know
// besides.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/pt2/origin.h"
#include "backends/pt2/program_writer.h"
#include "base/error.h"
#include "ops/table/op.h"

namespace modelport::pt2 {
namespace {

void append_item(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

/// The value whose memory `id` may share.
ir::ValueId memory_of(const ir::Graph& graph, ir::ValueId id) {
  while (graph.value(id).origin == ir::Origin::node) {
    const ir::Node& node = graph.node(graph.value(id).producer);
    const bool view = ops::may_share_memory(node.op) && !node.args.empty();
    const ir::ValueId* first = view ? node.args[0].arg.get<ir::ValueId>() : nullptr;
    if (first == nullptr) break;
    id = *first;
  }
  return id;
}

constexpr std::string_view kLeaf = "{\"type\": null, \"context\": null, \"children_spec\": []}";

std::string tuple_spec(std::string_view children) {
  return fmt::format(
      "{{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{}]}}", children);
}

std::string leaves(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) append_item(text, kLeaf);
  return text;
}

std::string string_list(const std::vector<std::string>& texts) {
  std::string json = "[";
  JsonItems items(json);
  for (const std::string& text : texts) append_string(items.next(), text);
  json += ']';
  return json;
}

/// torch.utils._pytree.treespec_dumps of ((), {name: leaf, ...}).
std::string flat_inputs(const std::vector<std::string>& names) {
  std::string context;
  append_string(context, string_list(names));
  const std::string keywords =
      fmt::format("{{\"type\": \"builtins.dict\", \"context\": {}, \"children_spec\": [{}]}}",
                  context, leaves(names.size()));
  return "[1, " + tuple_spec(tuple_spec("") + ", " + keywords) + "]";
}

}  // namespace

/// Inputs that the model has written to, and what is in them afterwards.
std::vector<ir::Mutation> ProgramWriter::written_inputs() const {
  std::vector<ir::Mutation> written;
  for (const auto& [output_name, input_name] : request_.signature.given) {
    const auto output = std::ranges::find(graph_.outputs, output_name, &ir::Output::name);
    const auto input = std::ranges::find(graph_.inputs, input_name, [&](ir::ValueId id) {
      return std::string_view(graph_.value(id).name);
    });
    if (output == graph_.outputs.end() || input == graph_.inputs.end()) continue;
    const ir::ValueId* value = output->value.get<ir::ValueId>();
    if (value == nullptr || *value == *input) continue;
    // A model may return what it wrote more than once.
    const bool known =
        std::ranges::any_of(written, [&](const ir::Mutation& m) { return m.buffer == *input; });
    if (!known) written.push_back({*input, *value});
  }
  return written;
}

/// Torch copies into the buffers when the program has run, so a value that shares memory with one
/// of them is copied before that.
std::string ProgramWriter::safe_from_writes(ir::ValueId id) {
  const ir::ValueId memory = memory_of(graph_, id);
  const auto is_it = [&](const ir::Mutation& m) { return m.buffer == memory; };
  const bool written =
      std::ranges::any_of(graph_.mutations, is_it) || std::ranges::any_of(written_inputs(), is_it);
  return written ? copied(id) : names_[id.index];
}

std::string ProgramWriter::copied(ir::ValueId id) {
  NodeText node;
  node.target = "torch.ops.aten.clone.default";
  node.name = text_.names().fresh("clone");
  std::string arg;
  append_tensor_argument(arg, names_[id.index]);
  append_input(node.inputs, "self", arg);
  append_tensor_argument(node.outputs, node.name);
  text_.add_tensor(node.name,
                   tensor_type_json(graph_.value(id).tensor(), symbols_, text_.device()));
  text_.add(node);
  return node.name;
}

/// Torch wants them before the outputs of the model.
void ProgramWriter::add_mutations() {
  for (const ir::Mutation& mutation : graph_.mutations) {
    const ir::Value& buffer = graph_.value(mutation.buffer);
    std::string name;
    append_string(name, safe_from_writes(mutation.value));
    const bool parameter = buffer.weight_kind == ir::WeightKind::parameter;
    std::string target;
    append_string(target, buffer.name);
    append_item(outputs_, fmt::format("{{\"as_tensor\": {{\"name\": {}}}}}", name));
    append_item(
        output_specs_,
        fmt::format("{{\"{0}_mutation\": {{\"arg\": {{\"name\": {1}}}, \"{0}_name\": {2}}}}}",
                    parameter ? "parameter" : "buffer", name, target));
  }
  std::set<ir::ValueId> taken;  // torch knows a write by the name of its value
  for (const ir::Mutation& mutation : written_inputs()) {
    const bool is_first = taken.insert(mutation.value).second;
    std::string name;
    append_string(name, is_first ? safe_from_writes(mutation.value) : copied(mutation.value));
    std::string target;
    append_string(target, names_[mutation.buffer.index]);
    append_item(outputs_, fmt::format("{{\"as_tensor\": {{\"name\": {}}}}}", name));
    append_item(output_specs_,
                fmt::format("{{\"user_input_mutation\": {{\"arg\": {{\"name\": {}}}, "
                            "\"user_input_name\": {}}}}}",
                            name, target));
  }
}

void ProgramWriter::add_outputs() {
  const auto find = [&](const std::string& name) -> const ir::Output* {
    const auto found = std::ranges::find(graph_.outputs, name, &ir::Output::name);
    return found == graph_.outputs.end() ? nullptr : &*found;
  };
  if (request_.signature.outputs.empty()) {
    for (const ir::Output& output : graph_.outputs) add_output(output.value);
    return;
  }
  for (const signature::Leaf& leaf : request_.signature.outputs) {
    if (!leaf.in_graph) {
      add_output(leaf.constant);
      continue;
    }
    const ir::Output* output = find(leaf.name);
    if (output == nullptr)
      throw InternalError("the signature names an output that the graph lacks: " + leaf.name);
    add_output(output->value);
  }
}

void ProgramWriter::add_output(const ir::Arg& arg) {
  std::string text;
  const ir::ValueId* id = arg.get<ir::ValueId>();
  if (id != nullptr && std::holds_alternative<ir::TensorType>(graph_.value(*id).type)) {
    append_tensor_argument(text, safe_from_writes(*id));
  } else {
    arguments_.append(text, arg, "");
  }
  append_item(outputs_, text);
  append_item(output_specs_, fmt::format("{{\"user_output\": {{\"arg\": {}}}}}", text));
}

void ProgramWriter::add_output(const signature::Constant& constant) {
  const ir::Arg arg = std::visit(
      [](const auto& value) -> ir::Arg {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) return {};
        if constexpr (std::is_same_v<T, std::int64_t>) return {shape::Int(value)};
        if constexpr (!std::is_same_v<T, std::monostate> && !std::is_same_v<T, std::int64_t>)
          return {value};
      },
      constant.value);
  if (arg.get<std::string>() != nullptr) {
    throw ExportError(Diagnostic{
        .code = Code::unsupported_op,
        .what = "a .pt2 program cannot return the text \"" + *arg.get<std::string>() + '"',
        .where = {},
        .module_path = {},
        .notes = {},
        .ways_out = {"leave it out of what the model returns"}});
  }
  add_output(arg);
}

std::string ProgramWriter::module_call_json() const {
  const signature::Signature& signature = request_.signature;
  std::vector<std::string> names;
  std::string in_spec = signature.input_structure;
  if (in_spec.empty()) {
    if (signature.inputs.empty()) {
      for (const ir::ValueId id : graph_.inputs) names.push_back(identifier(graph_.value(id).name));
    } else {
      for (const signature::Leaf& leaf : signature.inputs) names.push_back(identifier(leaf.name));
    }
    in_spec = flat_inputs(names);
  } else {
    names = signature.argument_names;
  }
  std::string out_spec = signature.output_structure;
  const std::size_t count =
      signature.outputs.empty() ? graph_.outputs.size() : signature.outputs.size();
  if (out_spec.empty()) out_spec = "[1, " + tuple_spec(leaves(count)) + "]";
  std::string json = "{\"inputs\": [], \"outputs\": [], \"in_spec\": ";
  append_string(json, in_spec);
  json += ", \"out_spec\": ";
  append_string(json, out_spec);
  json += ", \"forward_arg_names\": " + (names.empty() ? "null" : string_list(names)) + "}";
  return json;
}

std::string ProgramWriter::origin_json() const {
  Origin origin;
  origin.graph = graph_.name;
  const signature::Signature& signature = request_.signature;
  for (const signature::Leaf& leaf : signature.inputs) origin.inputs.push_back(leaf.name);
  for (const signature::Leaf& leaf : signature.outputs) origin.outputs.push_back(leaf.name);
  if (signature.inputs.empty()) {
    for (const ir::ValueId id : graph_.inputs) origin.inputs.push_back(graph_.value(id).name);
  }
  if (signature.outputs.empty()) {
    for (const ir::Output& output : graph_.outputs) origin.outputs.push_back(output.name);
  }
  for (const ir::ValueId id : graph_.weights) origin.weights.push_back(graph_.value(id).name);
  for (const auto& [name, symbol] : symbols_.all()) {
    if (symbols_.occurs(name)) origin.symbols.push_back({symbol.name, name});
  }
  origin.dims = graph_.dims;
  origin.guards = graph_.guards;
  for (const ir::Assumption& assumption : graph_.assumptions) {
    const ir::Place& place = graph_.place(assumption.place);
    origin.assumptions.push_back({names_[assumption.value.index], assumption.expected, place});
  }
  return print(origin);
}

}  // namespace modelport::pt2
