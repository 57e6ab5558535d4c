#include "backends/onnx/model_text.h"

#include <fmt/format.h>

#include <protozero/pbf_builder.hpp>
#include <set>

#include "backends/onnx/inner_graph.h"
#include "backends/onnx/proto.h"

namespace modelport::onnx {
namespace {

using protozero::pbf_builder;

void add_entry(std::string& data, std::string_view key, std::string_view value) {
  pbf_builder<proto::Entry> entry(data);
  entry.add_string(proto::Entry::key, key.data(), key.size());
  entry.add_string(proto::Entry::value, value.data(), value.size());
}

class AttributeText {
 public:
  AttributeText(std::string& data, const std::string& name) : builder_(data) {
    builder_.add_string(proto::Attribute::name, name);
  }

  void add(const ir::Arg& value) {
    if (const bool* truth = value.get<bool>()) return add_integer(*truth ? 1 : 0);
    if (const auto* x = value.get<shape::Int>()) return add_integer(x->constant().value());
    if (const Dtype* dtype = value.get<Dtype>()) return add_integer(proto::data_type(*dtype));
    if (const double* real = value.get<double>()) {
      builder_.add_float(proto::Attribute::f, static_cast<float>(*real));
      return type(proto::AttributeType::float_number);
    }
    if (const auto* text = value.get<std::string>()) {
      builder_.add_bytes(proto::Attribute::s, *text);
      return type(proto::AttributeType::string);
    }
    if (const auto* list = value.get<ir::ArgList>()) return add_list(*list);
    throw InternalError("an attribute that ONNX does not have");
  }

 private:
  void add_integer(std::int64_t value) {
    builder_.add_int64(proto::Attribute::i, value);
    type(proto::AttributeType::integer);
  }

  void add_list(const ir::ArgList& list) {
    auto kind = proto::AttributeType::ints;
    for (const ir::Arg& item : list) {
      if (const auto* x = item.get<shape::Int>()) {
        builder_.add_int64(proto::Attribute::ints, x->constant().value());
      } else if (const double* real = item.get<double>()) {
        builder_.add_float(proto::Attribute::floats, static_cast<float>(*real));
        kind = proto::AttributeType::floats;
      } else {
        builder_.add_bytes(proto::Attribute::strings, *item.get<std::string>());
        kind = proto::AttributeType::strings;
      }
    }
    type(kind);
  }

  void type(proto::AttributeType type) {
    builder_.add_enum(proto::Attribute::type, static_cast<std::int32_t>(type));
  }

  pbf_builder<proto::Attribute> builder_;
};

std::string opset_message(std::string_view domain, std::int64_t version) {
  std::string data;
  pbf_builder<proto::OperatorSet> opset(data);
  opset.add_string(proto::OperatorSet::domain, domain.data(), domain.size());
  opset.add_int64(proto::OperatorSet::version, version);
  return data;
}

}  // namespace

OpName op_name(std::string_view op) {
  const std::size_t dot = op.rfind('.');
  if (dot == std::string_view::npos) return {{}, op};
  const std::string_view domain = op.substr(0, dot);
  return {domain == "onnx" ? std::string_view() : domain, op.substr(dot + 1)};
}

std::string attribute_message(const std::string& name, const ir::Arg& value) {
  std::string data;
  AttributeText(data, name).add(value);
  return data;
}

std::string model_fields(const OnnxRequest& request) {
  std::string data;
  pbf_builder<proto::Model> model(data);
  model.add_int64(proto::Model::ir_version, proto::ir_version(request.options.opset));
  model.add_string(proto::Model::producer_name, "modelport");
  model.add_string(proto::Model::producer_version, request.options.producer_version);
  model.add_message(proto::Model::opset_import, opset_message("", request.options.opset));
  std::set<std::string> domains;
  for (const ir::Node& node : request.graph.nodes()) {
    domains.emplace(op_name(node.op).domain);
    for (const std::string& op : inner_operators(node)) domains.emplace(op_name(op).domain);
  }
  for (const std::string& domain : domains) {
    if (!domain.empty()) model.add_message(proto::Model::opset_import, opset_message(domain, 1));
  }
  for (const auto& [key, value] : request.options.metadata) {
    std::string entry;
    add_entry(entry, key, value);
    model.add_message(proto::Model::metadata_props, entry);
  }
  return data;
}

namespace {

/// How many outputs after the first one are not asked for.
constexpr std::string_view kLeftOut = "outputs_left_out";

std::vector<std::string> attributes_of(const ir::Graph& graph, const ir::Node& node,
                                       const ValueNames& names) {
  if (has_inner_graphs(node)) return inner_graph_attributes(graph, node, names);
  std::vector<std::string> attributes;
  for (const ir::NamedArg& named : node.args) {
    if (named.name != "inputs" && named.name != kLeftOut)
      attributes.push_back(attribute_message(named.name, named.arg));
  }
  return attributes;
}

}  // namespace

std::string node_message(const ir::Graph& graph, ir::NodeId id, const ValueNames& names) {
  const ir::Node& node = graph.node(id);
  const OpName op = op_name(node.op);
  const ir::Place& place = graph.place(node.place);
  std::string data;
  pbf_builder<proto::Node> builder(data);
  for (const ir::Arg& input : outer_inputs(node)) {
    const ir::ValueId* value = input.get<ir::ValueId>();
    builder.add_string(proto::Node::input, value == nullptr ? std::string() : names.of(*value));
  }
  const ir::Arg* left_out = node.find(kLeftOut);
  for (const ir::ValueId result : node.results) {
    builder.add_string(proto::Node::output, names.of(result));
    for (std::int64_t i = 0; left_out != nullptr && i < *left_out->get<shape::Int>()->constant();
         ++i)
      builder.add_string(proto::Node::output, "");
    left_out = nullptr;
  }
  builder.add_string(proto::Node::name,
                     fmt::format("{}/{}_{}", place.module_path, op.type, id.index));
  builder.add_string(proto::Node::op_type, op.type.data(), op.type.size());
  for (const std::string& attribute : attributes_of(graph, node, names))
    builder.add_message(proto::Node::attribute, attribute);
  if (!op.domain.empty())
    builder.add_string(proto::Node::domain, op.domain.data(), op.domain.size());
  if (place.where.known()) {
    std::string entry;
    add_entry(entry, "source", fmt::format("{}:{}", place.where.file, place.where.line));
    builder.add_message(proto::Node::metadata_props, entry);
  }
  return data;
}

std::string value_message(const std::string& name, const ir::TensorType& type) {
  std::string shape;
  {
    pbf_builder<proto::Shape> sizes(shape);
    for (const shape::Int& size : type.shape) {
      pbf_builder<proto::Dimension> dimension(sizes, proto::Shape::dim);
      if (const auto number = size.constant()) {
        dimension.add_int64(proto::Dimension::value, *number);
      } else {
        dimension.add_string(proto::Dimension::param, shape::print(size));
      }
    }
  }
  std::string tensor;
  {
    pbf_builder<proto::TensorType> builder(tensor);
    builder.add_int32(proto::TensorType::elem_type, proto::data_type(type.dtype));
    builder.add_message(proto::TensorType::shape, shape);
  }
  std::string kind;
  pbf_builder<proto::Type>(kind).add_message(proto::Type::tensor_type, tensor);
  std::string data;
  pbf_builder<proto::ValueInfo> value(data);
  value.add_string(proto::ValueInfo::name, name);
  value.add_message(proto::ValueInfo::type, kind);
  return data;
}

}  // namespace modelport::onnx
