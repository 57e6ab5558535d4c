// The text form of a graph, for people, tests and golden files: it prints and parses back to the
// same graph.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace modelport::ir {

std::string print(const Type& type,
                  const Graph* graph = nullptr);  // "f32[batch, seq, 64]", "int u0"
/// Inputs print as %name, weights as @name, results of nodes as %number.
std::string print(const Graph& graph);
/// One node as the text form shows it, for messages.
std::string print(const Graph& graph, const Node& node);
/// Throws ExportError with Code::bad_text and line and column; never crashes on hostile text.
Graph parse_graph(std::string_view text);
/// A type alone, for tests and samples: "f32[a, b, 3]".
TensorType parse_tensor_type(std::string_view text);

}  // namespace modelport::ir
