// Protobuf messages of a model that do not grow with its weights.
#pragma once

#include <string>
#include <string_view>

#include "backends/onnx/value_names.h"
#include "backends/onnx/writer.h"

namespace modelport::onnx {

/// Fields of ModelProto other than the graph.
std::string model_fields(const OnnxRequest& request);
/// NodeProto
std::string node_message(const ir::Graph& graph, ir::NodeId node, const ValueNames& names);
/// ValueInfoProto
std::string value_message(const std::string& name, const ir::TensorType& type);

}  // namespace modelport::onnx
