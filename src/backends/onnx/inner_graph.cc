#include "backends/onnx/inner_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <protozero/pbf_builder.hpp>

#include "backends/onnx/model_text.h"
#include "backends/onnx/proto.h"
#include "ir/lexical.h"

namespace modelport::onnx {
namespace {

using protozero::pbf_builder;
using Named = std::function<std::string(std::string_view)>;

constexpr std::string_view kThen = "then", kElse = "else", kBody = "body";

/// `names = Operator(names) {attribute=number}`.
struct Line {
  std::vector<std::string> results;
  std::string op;
  std::vector<std::string> operands;
  std::vector<ir::NamedArg> attributes;
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(", ");
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return parts;
}

ir::NamedArg attribute(std::string_view text) {
  const std::size_t sign = text.find('=');
  const std::string name(text.substr(0, sign));
  const std::string_view value = text.substr(sign + 1);
  if (const auto integer = ir::read_integer(value)) return {name, {shape::Int(*integer)}};
  return {name, {ir::read_double(value).value()}};
}

Line parsed(std::string_view text) {
  const auto until = [&](std::string_view mark) {
    const std::string_view part = text.substr(0, text.find(mark));
    text.remove_prefix(std::min(text.size(), part.size() + mark.size()));
    return part;
  };
  Line line{.results = split(until(" = ")),
            .op = std::string(until("(")),
            .operands = split(until(")")),
            .attributes = {}};
  until("{");
  for (const std::string& one : split(until("}"))) line.attributes.push_back(attribute(one));
  return line;
}

std::vector<Line> lines_of(const ir::Node& node, std::string_view graph) {
  std::vector<Line> lines;
  for (const ir::Arg& text : *node.find(graph)->get<ir::ArgList>()) {
    lines.push_back(parsed(*text.get<std::string>()));
  }
  return lines;
}

std::vector<Line> lines_of_body(const ir::Node& node) {
  std::vector<Line> lines = lines_of(node, kBody);
  const auto keeps = [](const Line& line) { return line.results.front() == "kept"; };
  if (std::ranges::none_of(lines, keeps)) lines.push_back({{"kept"}, "Identity", {"next"}, {}});
  return lines;
}

std::string node_of(const Line& line, const Named& named) {
  std::string data;
  pbf_builder<proto::Node> node(data);
  for (const std::string& operand : line.operands)
    node.add_string(proto::Node::input, operand.empty() ? operand : named(operand));
  for (const std::string& result : line.results)
    node.add_string(proto::Node::output, named(result));
  node.add_string(proto::Node::name, named(line.results.front()));
  const OpName op = op_name(line.op);
  node.add_string(proto::Node::op_type, op.type.data(), op.type.size());
  for (const ir::NamedArg& one : line.attributes)
    node.add_message(proto::Node::attribute, attribute_message(one.name, one.arg));
  if (!op.domain.empty()) node.add_string(proto::Node::domain, op.domain.data(), op.domain.size());
  return data;
}

/// A name of a line, and what it is.
struct Typed {
  std::string name;
  ir::TensorType type;
};

struct InnerGraph {
  std::string_view attribute;
  std::vector<Line> lines;
  std::vector<Typed> inputs, outputs;
};

std::string message(const InnerGraph& inner, const Named& named) {
  std::string graph;
  {
    pbf_builder<proto::Graph> builder(graph);
    for (const Line& line : inner.lines)
      builder.add_message(proto::Graph::node, node_of(line, named));
    builder.add_string(proto::Graph::name, named(inner.attribute));
    for (const Typed& one : inner.inputs)
      builder.add_message(proto::Graph::input, value_message(named(one.name), one.type));
    for (const Typed& one : inner.outputs)
      builder.add_message(proto::Graph::output, value_message(named(one.name), one.type));
  }
  std::string data;
  pbf_builder<proto::Attribute> attribute(data);
  attribute.add_string(proto::Attribute::name, std::string(inner.attribute));
  attribute.add_message(proto::Attribute::g, graph);
  attribute.add_enum(proto::Attribute::type,
                     static_cast<std::int32_t>(proto::AttributeType::graph));
  return data;
}

/// What there is of a tensor at one place of the axis.
ir::TensorType at_one_place(ir::TensorType type, std::int64_t axis) {
  type.shape.erase(type.shape.begin() + axis);
  return type;
}

const ir::ArgList& inputs_of(const ir::Node& node) {
  return *node.find("inputs")->get<ir::ArgList>();
}

std::vector<std::string> attributes_of_scan(const ir::Graph& graph, const ir::Node& node,
                                            const Named& named) {
  const auto type = [&](ir::ValueId id) { return graph.value(id).tensor(); };
  const ir::ArgList& inputs = inputs_of(node);
  const ir::Arg& axis = *node.find("axis");
  const std::int64_t place = *axis.get<shape::Int>()->constant();
  const ir::TensorType state = type(node.results[0]);
  InnerGraph body{
      .attribute = kBody,
      .lines = lines_of_body(node),
      .inputs = {{"state", state}},
      .outputs = {{"next", state}, {"kept", at_one_place(type(node.results[1]), place)}}};
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const ir::TensorType whole = type(*inputs[i].get<ir::ValueId>());
    body.inputs.push_back({fmt::format("slice_{}", i - 1), at_one_place(whole, place)});
  }
  const std::size_t count = inputs.size() - 1;
  return {attribute_message("num_scan_inputs", {shape::Int(static_cast<std::int64_t>(count))}),
          attribute_message("scan_input_axes", {ir::ArgList(count, axis)}),
          attribute_message("scan_output_axes", {ir::ArgList{axis}}), message(body, named)};
}

std::vector<std::string> attributes_of_if(const ir::Graph& graph, const ir::Node& node,
                                          const ValueNames& names) {
  const std::string own = names.of(node.results[0]);
  std::vector<std::string> attributes;
  for (const std::string_view branch : {kThen, kElse}) {
    // A branch sees the values around it by their names.
    const Named named = [&](std::string_view name) {
      constexpr std::string_view kInput = "input_";
      if (!name.starts_with(kInput)) return fmt::format("{}/{}/{}", own, branch, name);
      const auto index = ir::read_integer(name.substr(kInput.size())).value();
      const ir::Arg& input = inputs_of(node)[static_cast<std::size_t>(index)];
      return names.of(*input.get<ir::ValueId>());
    };
    const std::string attribute = fmt::format("{}_branch", branch);
    InnerGraph inner{
        .attribute = attribute, .lines = lines_of(node, branch), .inputs = {}, .outputs = {}};
    for (std::size_t i = 0; i < node.results.size(); ++i)
      inner.outputs.push_back({fmt::format("result_{}", i), graph.value(node.results[i]).tensor()});
    attributes.push_back(message(inner, named));
  }
  return attributes;
}

}  // namespace

bool has_inner_graphs(const ir::Node& node) { return node.op == kScan || node.op == kIf; }

std::span<const ir::Arg> outer_inputs(const ir::Node& node) {
  if (node.find("inputs") == nullptr) return {};
  const std::span<const ir::Arg> inputs = inputs_of(node);
  return node.op == kIf ? inputs.first(1) : inputs;
}

std::vector<std::string> inner_graph_attributes(const ir::Graph& graph, const ir::Node& node,
                                                const ValueNames& names) {
  if (node.op == kIf) return attributes_of_if(graph, node, names);
  // Names are of the whole file, and those of results are nobody else's.
  const std::string& own = names.of(node.results[0]);
  return attributes_of_scan(graph, node,
                            [&](std::string_view name) { return fmt::format("{}/{}", own, name); });
}

std::vector<std::string> inner_operators(const ir::Node& node) {
  std::vector<std::string> operators;
  if (!has_inner_graphs(node)) return operators;
  for (const std::string_view graph : {kThen, kElse, kBody}) {
    if (node.find(graph) == nullptr) continue;
    for (Line& line : lines_of(node, graph)) operators.push_back(std::move(line.op));
  }
  return operators;
}

}  // namespace modelport::onnx
