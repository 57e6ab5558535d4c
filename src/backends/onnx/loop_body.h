// Loops. In the graph a Scan has the names of the operators that its body is a chain of; the file
// wants a graph in the node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/onnx/value_names.h"
#include "ir/graph.h"

namespace modelport::onnx {

/// inputs=[state, one tensor for each operator], body=[operators], axis=number; the last state, and
/// the states of all places.
inline constexpr std::string_view kScan = "onnx.Scan";

/// The attributes of the file that are no graph.
std::vector<ir::NamedArg> scan_attributes(const ir::Node& node);
/// AttributeProto: state = operator(state, slice) for one operator after the other.
std::string body_attribute(const ir::Graph& graph, const ir::Node& node, const ValueNames& names);

}  // namespace modelport::onnx
