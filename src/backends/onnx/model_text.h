// Protobuf messages of a model that do not grow with its weights.
#pragma once

#include <string>
#include <string_view>

#include "backends/onnx/value_names.h"
#include "backends/onnx/writer.h"

namespace modelport::onnx {

/// "onnx.MatMul" is of the default domain, as "MatMul" is, "com.microsoft.FusedMatMul" of
/// com.microsoft.
struct OpName {
  std::string_view domain;
  std::string_view type;
};
OpName op_name(std::string_view op);

/// Fields of ModelProto other than the graph.
std::string model_fields(const OnnxRequest& request);
/// NodeProto
std::string node_message(const ir::Graph& graph, ir::NodeId node, const ValueNames& names);
/// AttributeProto of what is no graph
std::string attribute_message(const std::string& name, const ir::Arg& value);
/// ValueInfoProto
std::string value_message(const std::string& name, const ir::TensorType& type);

}  // namespace modelport::onnx
