// Loops. In the graph a Scan has the lines of its body as text; the file wants a graph in the node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/onnx/value_names.h"
#include "ir/graph.h"

namespace modelport::onnx {

/// inputs=[state, tensors that are cut along the axis], body=[lines], axis=number; the last state,
/// and what was kept at each place. A line is `name = Operator(names)`, of `state`, `slice_0` and
/// so on, and what lines before it made; `next` is the state after it, `kept` what is kept, which
/// is that state where no line has this name.
inline constexpr std::string_view kScan = "onnx.Scan";

/// The attributes of the file that are no graph.
std::vector<ir::NamedArg> scan_attributes(const ir::Node& node);
/// AttributeProto of the lines.
std::string body_attribute(const ir::Graph& graph, const ir::Node& node, const ValueNames& names);

}  // namespace modelport::onnx
