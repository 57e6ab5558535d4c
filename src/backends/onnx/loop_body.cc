#include "backends/onnx/loop_body.h"

#include <fmt/format.h>

#include <protozero/pbf_builder.hpp>

#include "backends/onnx/model_text.h"
#include "backends/onnx/proto.h"

namespace modelport::onnx {
namespace {

using protozero::pbf_builder;

std::string node_of(const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& output) {
  std::string data;
  pbf_builder<proto::Node> node(data);
  for (const std::string& input : inputs) node.add_string(proto::Node::input, input);
  node.add_string(proto::Node::output, output);
  node.add_string(proto::Node::op_type, op);
  return data;
}

}  // namespace

std::vector<ir::NamedArg> scan_attributes(const ir::Node& node) {
  const ir::ArgList& operators = *node.find("body")->get<ir::ArgList>();
  const auto count = static_cast<std::int64_t>(operators.size());
  const ir::Arg& axis = *node.find("axis");
  return {{"num_scan_inputs", {shape::Int(count)}},
          {"scan_input_axes", {ir::ArgList(operators.size(), axis)}},
          {"scan_output_axes", {ir::ArgList{axis}}}};
}

std::string body_attribute(const ir::Graph& graph, const ir::Node& node, const ValueNames& names) {
  const ir::ArgList& operators = *node.find("body")->get<ir::ArgList>();
  const ir::TensorType& type = graph.value(node.results[0]).tensor();
  // Names are of the whole file, and those of results are nobody else's.
  const std::string& own = names.of(node.results[0]);
  const auto local = [&](std::string_view what) { return fmt::format("{}/{}", own, what); };
  std::string state = local("state");
  const std::string kept = local("kept");
  std::string body;
  {
    pbf_builder<proto::Graph> builder(body);
    std::vector<std::string> inputs{state};
    for (std::size_t i = 0; i < operators.size(); ++i) {
      inputs.push_back(local(fmt::format("slice_{}", i)));
      const std::string next = local(fmt::format("state_{}", i));
      builder.add_message(proto::Graph::node,
                          node_of(*operators[i].get<std::string>(), {state, inputs.back()}, next));
      state = next;
    }
    builder.add_message(proto::Graph::node, node_of("Identity", {state}, kept));
    builder.add_string(proto::Graph::name, local("body"));
    for (const std::string& input : inputs)
      builder.add_message(proto::Graph::input, value_message(input, type));
    builder.add_message(proto::Graph::output, value_message(state, type));
    builder.add_message(proto::Graph::output, value_message(kept, type));
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
