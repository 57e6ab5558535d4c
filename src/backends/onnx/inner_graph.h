// Graphs inside nodes: what a Scan does at each place, and the branches of an If. In the graph they
// are lines of text; the file wants graphs in the node.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/onnx/value_names.h"
#include "ir/graph.h"

namespace modelport::onnx {

// A line is `names = Operator(names)`, or `names = domain.Operator(name, , name) {number=1,
// factor=0.5}`: an operand may be left out, and attributes are numbers.

/// inputs=[state, tensors that are cut along the axis], body=[lines], axis=number; the last state,
/// and what was kept at each place. Lines have `state`, `slice_0` and so on, and what lines before
/// them made; `next` is the state after them, `kept` what is kept, which is that state where no
/// line has this name.
inline constexpr std::string_view kScan = "onnx.Scan";
/// inputs=[condition, values], then=[lines], else=[lines]. Lines have the values as `input_1` and
/// so on; `result_0` and so on are what the node gives.
inline constexpr std::string_view kIf = "onnx.If";

bool has_inner_graphs(const ir::Node& node);
/// Those of its inputs that the file names at the node; branches read the ones after them.
std::span<const ir::Arg> outer_inputs(const ir::Node& node);
/// AttributeProto of each attribute.
std::vector<std::string> inner_graph_attributes(const ir::Graph& graph, const ir::Node& node,
                                                const ValueNames& names);
/// Operators of the lines, with their domains.
std::vector<std::string> inner_operators(const ir::Node& node);

}  // namespace modelport::onnx
