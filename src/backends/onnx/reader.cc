#include "backends/onnx/reader.h"

#include <fmt/format.h>

#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>
#include <set>

#include "backends/onnx/attribute_reader.h"
#include "backends/onnx/proto.h"
#include "backends/onnx/tensor_reader.h"
#include "base/error.h"

namespace modelport::onnx {
namespace {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_wire_type;

// Fields that only a reader meets.
constexpr auto kModelFunctions = static_cast<proto::Model>(25);
constexpr auto kAttributeGraph = static_cast<proto::Attribute>(6);
constexpr auto kAttributeGraphs = static_cast<proto::Attribute>(11);
constexpr auto kAttributeTensor = static_cast<proto::Attribute>(5);
constexpr auto kAttributeTensors = static_cast<proto::Attribute>(10);
constexpr auto kAttributeSparse = static_cast<proto::Attribute>(22);
constexpr auto kAttributeSparses = static_cast<proto::Attribute>(23);
constexpr auto kGraphSparseInitializer = static_cast<proto::Graph>(15);
enum class Function : std::uint32_t { node = 7, attribute = 11 };
enum class SparseTensor : std::uint32_t { values = 1, indices = 2 };

/// Graphs inside graphs (branches, loops): more than any model has, less than a stack.
constexpr int kDeepest = 64;

std::string axis_of(const data_view& data) {
  std::string axis = "?";
  pbf_message<proto::Dimension> reader(data);
  while (reader.next()) {
    if (reader.tag_and_type() == number_field(proto::Dimension::value)) {
      axis = std::to_string(reader.get_int64());
    } else if (reader.tag_and_type() == bytes_field(proto::Dimension::param)) {
      axis = text(reader.get_view());
    } else {
      reader.skip();
    }
  }
  return axis;
}

void read_tensor_type(const data_view& data, ValueSummary& value) {
  pbf_message<proto::TensorType> reader(data);
  while (reader.next()) {
    if (reader.tag_and_type() == number_field(proto::TensorType::elem_type)) {
      value.dtype = dtype_name(reader.get_int32());
    } else if (reader.tag_and_type() == bytes_field(proto::TensorType::shape)) {
      value.has_shape = true;
      pbf_message<proto::Shape> shape(reader.get_view());
      while (shape.next(proto::Shape::dim, pbf_wire_type::length_delimited))
        value.shape.push_back(axis_of(shape.get_view()));
    } else {
      reader.skip();
    }
  }
}

ValueSummary value_of(const data_view& data) {
  ValueSummary value;
  pbf_message<proto::ValueInfo> reader(data);
  while (reader.next()) {
    if (reader.tag_and_type() == bytes_field(proto::ValueInfo::name)) {
      value.name = text(reader.get_view());
    } else if (reader.tag_and_type() == bytes_field(proto::ValueInfo::type)) {
      pbf_message<proto::Type> type(reader.get_view());
      while (type.next(proto::Type::tensor_type, pbf_wire_type::length_delimited))
        read_tensor_type(type.get_view(), value);
    } else {
      reader.skip();
    }
  }
  return value;
}

class GraphReader {
 public:
  /// `start` is where the file begins.
  GraphReader(ModelSummary& summary, const char* start) : summary_(summary), start_(start) {}

  void read_main(const data_view& data) {
    pbf_message<proto::Graph> reader(data);
    while (reader.next()) {
      const std::uint32_t field = reader.tag_and_type();
      if (field == bytes_field(proto::Graph::node)) {
        summary_.nodes.push_back(node(reader.get_view(), 0));
      } else if (field == bytes_field(proto::Graph::name)) {
        summary_.graph_name = text(reader.get_view());
      } else if (field == bytes_field(proto::Graph::initializer)) {
        summary_.weights.push_back(tensor(reader.get_view()));
      } else if (field == bytes_field(kGraphSparseInitializer)) {
        summary_.weights.push_back(sparse(reader.get_view()));
      } else if (field == bytes_field(proto::Graph::input)) {
        summary_.inputs.push_back(value_of(reader.get_view()));
      } else if (field == bytes_field(proto::Graph::output)) {
        summary_.outputs.push_back(value_of(reader.get_view()));
      } else {
        reader.skip();
      }
    }
  }

  void read_function(const data_view& data) {
    pbf_message<Function> reader(data);
    while (reader.next()) {
      if (reader.tag_and_type() == bytes_field(Function::node)) {
        node(reader.get_view(), 0);
      } else if (reader.tag_and_type() == bytes_field(Function::attribute)) {
        attribute(reader.get_view(), 0);
      } else {
        reader.skip();
      }
    }
  }

 private:
  WeightSummary tensor(const data_view& data) {
    return weight_of(data, start_, summary_.data_files);
  }

  /// Its values; where they stand may lie in a file too.
  WeightSummary sparse(const data_view& data) {
    WeightSummary values;
    pbf_message<SparseTensor> reader(data);
    while (reader.next()) {
      if (reader.tag_and_type() == bytes_field(SparseTensor::values)) {
        values = tensor(reader.get_view());
      } else if (reader.tag_and_type() == bytes_field(SparseTensor::indices)) {
        tensor(reader.get_view());
      } else {
        reader.skip();
      }
    }
    return values;
  }

  NodeSummary node(const data_view& data, int depth) {
    NodeSummary node;
    std::string domain;
    pbf_message<proto::Node> reader(data);
    while (reader.next()) {
      const std::uint32_t field = reader.tag_and_type();
      if (field == bytes_field(proto::Node::input)) {
        node.inputs.push_back(text(reader.get_view()));
      } else if (field == bytes_field(proto::Node::output)) {
        node.outputs.push_back(text(reader.get_view()));
      } else if (field == bytes_field(proto::Node::name)) {
        node.name = text(reader.get_view());
      } else if (field == bytes_field(proto::Node::op_type)) {
        node.op = text(reader.get_view());
      } else if (field == bytes_field(proto::Node::domain)) {
        domain = text(reader.get_view());
      } else if (field == bytes_field(proto::Node::attribute)) {
        const data_view held = reader.get_view();
        attribute(held, depth);
        if (depth == 0) add_text(held, node.attributes);
      } else if (field == bytes_field(proto::Node::metadata_props)) {
        auto [key, value] = entry_of(reader.get_view());
        if (key == "source") node.source = std::move(value);
      } else {
        reader.skip();
      }
    }
    if (!domain.empty() && domain != "ai.onnx") node.op = domain + "." + node.op;
    ++summary_.operators[node.op];
    return node;
  }

  static void add_text(const data_view& attribute, std::string& texts) {
    if (!texts.empty()) texts += ", ";
    texts += attribute_text(attribute);
  }

  void attribute(const data_view& data, int depth) {
    pbf_message<proto::Attribute> reader(data);
    while (reader.next()) {
      const std::uint32_t field = reader.tag_and_type();
      if (field == bytes_field(kAttributeGraph) || field == bytes_field(kAttributeGraphs)) {
        inner_graph(reader.get_view(), depth + 1);
      } else if (field == bytes_field(kAttributeTensor) ||
                 field == bytes_field(kAttributeTensors)) {
        tensor(reader.get_view());
      } else if (field == bytes_field(kAttributeSparse) ||
                 field == bytes_field(kAttributeSparses)) {
        sparse(reader.get_view());
      } else {
        reader.skip();
      }
    }
  }

  void inner_graph(const data_view& data, int depth) {
    if (depth > kDeepest) bad("graphs are nested too deeply");
    pbf_message<proto::Graph> reader(data);
    while (reader.next()) {
      if (reader.tag_and_type() == bytes_field(proto::Graph::node)) {
        node(reader.get_view(), depth);
      } else if (reader.tag_and_type() == bytes_field(proto::Graph::initializer)) {
        summary_.weights.push_back(tensor(reader.get_view()));
      } else if (reader.tag_and_type() == bytes_field(kGraphSparseInitializer)) {
        summary_.weights.push_back(sparse(reader.get_view()));
      } else {
        reader.skip();
      }
    }
  }

  ModelSummary& summary_;
  const char* start_;
};

std::pair<std::string, std::int64_t> opset_of(const data_view& data) {
  std::pair<std::string, std::int64_t> opset;
  pbf_message<proto::OperatorSet> reader(data);
  while (reader.next()) {
    if (reader.tag_and_type() == bytes_field(proto::OperatorSet::domain)) {
      opset.first = text(reader.get_view());
    } else if (reader.tag_and_type() == number_field(proto::OperatorSet::version)) {
      opset.second = reader.get_int64();
    } else {
      reader.skip();
    }
  }
  if (opset.first == "ai.onnx") opset.first.clear();
  return opset;
}

/// Old files list initializers among the inputs; what a user must pass is the rest.
void drop_initializers(ModelSummary& summary) {
  std::set<std::string_view> weights;
  for (const WeightSummary& weight : summary.weights) weights.insert(weight.name);
  std::erase_if(summary.inputs,
                [&](const ValueSummary& input) { return weights.contains(input.name); });
}

ModelSummary read(const data_view& data) {
  ModelSummary summary;
  GraphReader graph(summary, data.data());
  bool has_graph = false;
  pbf_message<proto::Model> reader(data);
  while (reader.next()) {
    const std::uint32_t field = reader.tag_and_type();
    if (field == number_field(proto::Model::ir_version)) {
      summary.ir_version = reader.get_int64();
    } else if (field == bytes_field(proto::Model::producer_name)) {
      summary.producer_name = text(reader.get_view());
    } else if (field == bytes_field(proto::Model::producer_version)) {
      summary.producer_version = text(reader.get_view());
    } else if (field == bytes_field(proto::Model::graph)) {
      has_graph = true;
      graph.read_main(reader.get_view());
    } else if (field == bytes_field(kModelFunctions)) {
      graph.read_function(reader.get_view());
    } else if (field == bytes_field(proto::Model::opset_import)) {
      summary.opsets.push_back(opset_of(reader.get_view()));
    } else if (field == bytes_field(proto::Model::metadata_props)) {
      summary.metadata.push_back(entry_of(reader.get_view()));
    } else {
      reader.skip();
    }
  }
  if (!has_graph || summary.ir_version <= 0) bad("it has no graph or no version");
  drop_initializers(summary);
  return summary;
}

}  // namespace

ModelSummary summarize(std::span<const std::byte> bytes, const std::string& name) {
  const auto fail = [&](const std::string& why) {
    bad(fmt::format("{} is no ONNX model, or a broken one: {}", name, why));
  };
  try {
    return read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const protozero::exception& error) {
    fail(bytes.empty() ? "the file is empty" : error.what());
  } catch (const ExportError& error) {
    fail(error.diagnostics().front().what);
  }
  throw InternalError("unreachable");
}

std::string further_outputs(std::span<const std::string> names) {
  std::string graph;
  protozero::pbf_builder<proto::Graph> builder(graph);
  for (const std::string& name : names) {
    protozero::pbf_builder<proto::ValueInfo> value(builder, proto::Graph::output);
    value.add_string(proto::ValueInfo::name, name);
  }
  std::string data;
  protozero::pbf_builder<proto::Model>(data).add_message(proto::Model::graph, graph);
  return data;
}

std::string settable_flag(const std::string& name) {
  std::string data;
  protozero::pbf_builder<proto::Model> model(data);
  protozero::pbf_builder<proto::Graph> graph(model, proto::Model::graph);
  protozero::pbf_builder<proto::ValueInfo> value(graph, proto::Graph::input);
  value.add_string(proto::ValueInfo::name, name);
  protozero::pbf_builder<proto::Type> type(value, proto::ValueInfo::type);
  protozero::pbf_builder<proto::TensorType> tensor(type, proto::Type::tensor_type);
  tensor.add_int32(proto::TensorType::elem_type, proto::data_type(Dtype::boolean));
  tensor.add_message(proto::TensorType::shape, std::string());
  return data;
}

}  // namespace modelport::onnx
