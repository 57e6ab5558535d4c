#include "backends/onnx/loop_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_builder.hpp>

#include "backends/onnx/model_text.h"
#include "backends/onnx/proto.h"

namespace modelport::onnx {
namespace {

using protozero::pbf_builder;

/// `name = Operator(names)`.
struct Line {
  std::string_view name;
  std::string_view op;
  std::vector<std::string_view> operands;
};

Line parsed(std::string_view text) {
  const auto until = [&](std::string_view mark) {
    const std::string_view part = text.substr(0, text.find(mark));
    text.remove_prefix(std::min(text.size(), part.size() + mark.size()));
    return part;
  };
  Line line{.name = until(" = "), .op = until("(")};
  text.remove_suffix(text.empty() ? 0 : 1);  // the bracket
  while (!text.empty()) line.operands.push_back(until(", "));
  return line;
}

template <class Named>
std::string node_of(const Line& line, const Named& named) {
  std::string data;
  pbf_builder<proto::Node> node(data);
  for (const std::string_view operand : line.operands) {
    node.add_string(proto::Node::input, named(operand));
  }
  node.add_string(proto::Node::output, named(line.name));
  node.add_string(proto::Node::op_type, std::string(line.op));
  return data;
}

std::vector<Line> lines_of(const ir::Node& node) {
  std::vector<Line> lines;
  for (const ir::Arg& text : *node.find("body")->get<ir::ArgList>()) {
    lines.push_back(parsed(*text.get<std::string>()));
  }
  if (std::ranges::find(lines, "kept", &Line::name) == lines.end()) {
    lines.push_back({"kept", "Identity", {"next"}});
  }
  return lines;
}

std::size_t slice_count(const ir::Node& node) {
  return node.find("inputs")->get<ir::ArgList>()->size() - 1;
}

/// What there is of a tensor at one place of the axis.
ir::TensorType at_one_place(ir::TensorType type, std::int64_t axis) {
  type.shape.erase(type.shape.begin() + axis);
  return type;
}

}  // namespace

std::vector<ir::NamedArg> scan_attributes(const ir::Node& node) {
  const std::size_t count = slice_count(node);
  const ir::Arg& axis = *node.find("axis");
  return {{"num_scan_inputs", {shape::Int(static_cast<std::int64_t>(count))}},
          {"scan_input_axes", {ir::ArgList(count, axis)}},
          {"scan_output_axes", {ir::ArgList{axis}}}};
}

std::string body_attribute(const ir::Graph& graph, const ir::Node& node, const ValueNames& names) {
  const std::int64_t axis = *node.find("axis")->get<shape::Int>()->constant();
  const ir::ArgList& inputs = *node.find("inputs")->get<ir::ArgList>();
  const ir::TensorType& state = graph.value(node.results[0]).tensor();
  // Names are of the whole file, and those of results are nobody else's.
  const std::string& own = names.of(node.results[0]);
  const auto local = [&](std::string_view what) { return fmt::format("{}/{}", own, what); };
  std::string body;
  {
    pbf_builder<proto::Graph> builder(body);
    for (const Line& line : lines_of(node)) {
      builder.add_message(proto::Graph::node, node_of(line, local));
    }
    builder.add_string(proto::Graph::name, local("body"));
    builder.add_message(proto::Graph::input, value_message(local("state"), state));
    for (std::size_t i = 0; i < slice_count(node); ++i) {
      const ir::TensorType& whole = graph.value(*inputs[i + 1].get<ir::ValueId>()).tensor();
      builder.add_message(proto::Graph::input, value_message(local(fmt::format("slice_{}", i)),
                                                             at_one_place(whole, axis)));
    }
    builder.add_message(proto::Graph::output, value_message(local("next"), state));
    const ir::TensorType& kept = graph.value(node.results[1]).tensor();
    builder.add_message(proto::Graph::output,
                        value_message(local("kept"), at_one_place(kept, axis)));
  }
  std::string data;
  pbf_builder<proto::Attribute> attribute(data);
  attribute.add_string(proto::Attribute::name, "body");
  attribute.add_message(proto::Attribute::g, body);
  attribute.add_enum(proto::Attribute::type,
                     static_cast<std::int32_t>(proto::AttributeType::graph));
  return data;
}

}  // namespace modelport::onnx
