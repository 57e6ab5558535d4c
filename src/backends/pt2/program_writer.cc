// Nodes and their types.
#include "backends/pt2/program_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/pt2/torch_numbers.h"
#include "base/error.h"
#include "ops/table/op.h"

namespace modelport::pt2 {
namespace {

/// "aten.add.Tensor" is "torch.ops.aten.add.Tensor", "aten.linear" is
/// "torch.ops.aten.linear.default".
std::string target_of(std::string_view op) {
  std::string target = "torch.ops.";
  target += op;
  if (std::ranges::count(op, '.') == 1) target += ".default";
  return target;
}

bool usable_in_stack(std::string_view path) {
  return path.find_first_of(",;[]()") == std::string_view::npos;
}

std::string metadata_json(const ir::Place& place) {
  std::string json = "{";
  if (place.where.known()) {
    json += "\"stack_trace\": ";
    // Torch shows a trace only if a line of code follows; the module says more than nothing.
    append_string(json, fmt::format("File \"{}\", line {}, in {}\n    # {}", place.where.file,
                                    place.where.line, place.where.function,
                                    place.module_path.empty() ? "model" : place.module_path));
  }
  if (!place.module_path.empty() && usable_in_stack(place.module_path)) {
    if (json.size() > 1) json += ", ";
    json += "\"nn_module_stack\": ";
    append_string(json, fmt::format("L__self__,,;L__self__.{0},{0},", place.module_path));
  }
  json += '}';
  return json;
}

}  // namespace

std::string tensor_type_json(const ir::TensorType& type, Symbols& symbols,
                             std::string_view device) {
  std::string json = fmt::format("{{\"dtype\": {}, \"sizes\": [", scalar_type(type.dtype));
  JsonItems sizes(json);
  for (const shape::Int& size : type.shape) sizes.next() += symbols.size_json(size);
  json += "], \"requires_grad\": false, \"device\": ";
  append_device(json, device);
  json += ", \"strides\": [";
  std::vector<shape::Int> strides(type.shape.size(), 1);
  for (std::size_t i = type.shape.size(); i-- > 1;) {
    strides[i - 1] = type.shape[i] == shape::Int(0) ? strides[i] : strides[i] * type.shape[i];
  }
  JsonItems items(json);
  for (const shape::Int& stride : strides) items.next() += symbols.size_json(stride);
  json += "], \"storage_offset\": {\"as_int\": 0}, \"layout\": 7}";
  return json;
}

ProgramWriter::ProgramWriter(const Pt2Request& request)
    : request_(request),
      graph_(request.graph),
      symbols_(request.graph),
      names_(request.graph.values().size()),
      arguments_(request.graph, names_, numbers_, symbols_.kinds()),
      guard_written_(request.graph.guards.size(), false),
      ranges_(shape::ranges_of(request.graph.dims)) {}

std::string ProgramWriter::write() {
  add_weights();
  add_inputs();
  add_input_checks();
  add_guards();
  for (const ir::Node& node : graph_.nodes()) add_node(node);
  add_guards();  // those on what the data decided
  add_assumptions();
  add_mutations();
  add_outputs();
  std::string json = "{\"graph_module\": {\"graph\": ";
  json += text_.finish(inputs_, outputs_);
  json += ", \"signature\": {\"input_specs\": [" + input_specs_ + "], \"output_specs\": [" +
          output_specs_ + "]}";
  json += ", \"module_call_graph\": [{\"fqn\": \"\", \"signature\": " + module_call_json() + "}]";
  json += ", \"metadata\": {\"modelport\": ";
  append_string(json, origin_json());
  json +=
      "}, \"treespec_namedtuple_fields\": {}}, \"opset_version\": {\"aten\": 10}, "
      "\"range_constraints\": ";
  json += ranges_json();
  // The schema of torch 2.13; a minor number more or less does not matter to its loader.
  json +=
      ", \"schema_version\": {\"major\": 8, \"minor\": 20}, \"verifiers\": [\"TRAINING\"], "
      "\"torch_version\": ";
  append_string(json, request_.torch_version);
  json += ", \"guards_code\": []}";
  return json;
}

void ProgramWriter::name_result(ir::ValueId id, std::string name) {
  const ir::Value& value = graph_.value(id);
  if (const auto* tensor = std::get_if<ir::TensorType>(&value.type)) {
    text_.add_tensor(name, tensor_type_json(*tensor, symbols_, text_.device()));
    numbers_.learn_sizes(name, tensor->shape);
  } else {
    const SymExpr symbol = std::visit([&](const auto& x) { return to_tree(x, symbols_.kinds()); },
                                      std::get<ir::ScalarType>(value.type).symbol);
    text_.add_number(symbol.kind, name, symbols_.value_json(symbol));
    numbers_.learn_number(symbol, name);
  }
  names_[id.index] = std::move(name);
}

void ProgramWriter::add_node(const ir::Node& node) {
  const ops::OpDef* row = ops::find_op(node.op);
  const ops::Schema* schema = row == nullptr ? nullptr : &ops::schema_of(*row);
  const std::string target = target_of(node.op);
  NodeText text;
  text.target = target;
  append_inputs(text, node, schema);
  text.name = text_.names().fresh(ops::base_name(node.op));
  append_outputs(text, node, schema);
  text.metadata = metadata(node.place);
  text_.add(text);
}

/// In the order of the schema. An argument behind one that is left out goes by name. What an
/// operator makes from nothing (`arange`) names its device, so that torch can move the program.
void ProgramWriter::append_inputs(NodeText& text, const ir::Node& node, const ops::Schema* schema) {
  std::string arg;
  if (schema == nullptr) {
    for (const ir::NamedArg& named : node.args) {
      arg.clear();
      arguments_.append(arg, named.arg, "");
      append_input(text.inputs, named.name, arg, Passing::keyword);
    }
    return;
  }
  const bool from_nothing = std::ranges::none_of(
      node.args, [&](const ir::NamedArg& named) { return arguments_.is_tensor(named.arg); });
  bool gap = false;
  for (const ops::Parameter& parameter : schema->parameters) {
    const ir::Arg* given = node.find(parameter.name);
    const bool device = parameter.type.starts_with("Device");
    if (device && (given != nullptr || from_nothing)) {
      given = &device_;
    } else if (given == nullptr && parameter.has_default) {
      gap = true;
      continue;
    }
    arg.clear();
    // Graphs leave None out; torch wants it where the schema gives no default (`int[]?
    // output_size`).
    arguments_.append(arg, given == nullptr ? ir::Arg{} : with_rest(node, *given), parameter.type);
    const bool by_name = gap || parameter.keyword_only;
    append_input(text.inputs, parameter.name, arg,
                 by_name ? Passing::keyword : Passing::positional);
  }
}

/// A -1 in a shape stands for what is left, which torch cannot tell where there are no elements:
/// where that may be, the size is written.
ir::Arg ProgramWriter::with_rest(const ir::Node& node, const ir::Arg& given) const {
  const auto* sizes = given.get<ir::ArgList>();
  if (sizes == nullptr || !ops::takes_shape(node.op) || node.results.size() != 1) return given;
  const std::vector<shape::Int>& shape = graph_.value(node.results[0]).tensor().shape;
  const auto may_be_zero = [&](const shape::Int& size) {
    return shape::bounds(size, ranges_).lo < 1;
  };
  if (shape.size() != sizes->size() || std::ranges::none_of(shape, may_be_zero)) return given;
  ir::ArgList full = *sizes;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto* size = full[i].get<shape::Int>();
    if (size != nullptr && *size == shape::Int(-1)) full[i] = {shape[i]};
  }
  return {full};
}

void ProgramWriter::append_outputs(NodeText& text, const ir::Node& node,
                                   const ops::Schema* schema) {
  const bool list =
      schema != nullptr && schema->returns.size() == 1 && schema->returns[0].ends_with("[]");
  const bool one = node.results.size() == 1 && !list;
  JsonItems items(text.outputs);
  if (list) text.outputs += "{\"as_tensors\": [";
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const ir::ValueId id = node.results[i];
    name_result(id, one ? text.name : text_.names().fresh(fmt::format("{}_{}", text.name, i)));
    std::string& out = items.next();
    if (list) {
      out += "{\"name\": ";
      append_string(out, names_[id.index]);
      out += '}';
    } else {
      arguments_.append(out, {id}, "");
    }
  }
  if (list) text.outputs += "]}";
}

const std::string& ProgramWriter::metadata(ir::PlaceId place) {
  if (metadata_.size() <= place.index) metadata_.resize(place.index + 1);
  std::string& json = metadata_[place.index];
  if (json.empty()) json = metadata_json(graph_.place(place));
  return json;
}

std::string ProgramWriter::ranges_json() const {
  std::string json = "{";
  JsonItems items(json);
  for (const auto& [name, symbol] : symbols_.all()) {
    if (!symbols_.occurs(name)) continue;
    const bool truth = symbol.kind == SymKind::boolean;
    const std::int64_t lo = truth ? 0 : symbol.range.lo;
    const std::int64_t hi = truth ? 1 : symbol.range.hi;
    const std::int64_t least = symbol.from_data ? shape::Range::kUnboundedBelow : 0;
    items.next() +=
        fmt::format("\"{}\": {{\"min_val\": {}, \"max_val\": {}}}", symbol.name,
                    lo <= least && least != 0 ? "null" : std::to_string(std::max(lo, least)),
                    hi == shape::Range::kUnbounded ? "null" : std::to_string(hi));
  }
  json += '}';
  return json;
}

std::string program_json(const Pt2Request& request) { return ProgramWriter(request).write(); }

}  // namespace modelport::pt2
