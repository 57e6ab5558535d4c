// The text form of a graph, for people, tests and golden files: it prints and parses back to the
// same graph.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace modelport::ir {

// graph name(%input: f32[batch, 64], %"odd name": int n)
//   where batch in 1.. = 3, u0 in 0..9 = 4 from data declared 0..,
//     batch*u0 >= 2  # model.py:12 in Model.forward, encoder
//   weights @w: f32[64], @b: f32[8] buffer, @h: f32[8] buffer_not_saved, @const.0: i64[3] constant
// {
//   %1, %2 = aten.op(self=%input, size=[batch, -1], eps=1e-05, dtype=f32) : f32[8], int u0
//   assume %2 == 4  # model.py:14 in Model.forward
//   return logits = %1, count = batch*u0
//   mutate @b = %1
// }
//
// The where clause: each dim with its range and its size in the example run, then the guards.
// Arguments: floats differ from integers (2.0); symbolic integers are expressions (past + seq);
// symbolic floats and bools are real(seq**-0.5) and bool(seq >= 2); real(u1) is read from data.
// Results are numbered in order; text that people write may name them. A comment behind a statement
// is its place if it reads like one.

/// "f32[batch, seq, 64]", "int u0"
std::string print(const Type& type, const Graph* graph = nullptr);
/// Inputs print as %name, weights as @name, results of nodes as %number.
std::string print(const Graph& graph);
/// One node as the text form shows it, for messages.
std::string print(const Graph& graph, const Node& node);
/// Throws ExportError with Code::bad_text and line and column; never crashes on hostile text.
Graph parse_graph(std::string_view text);
/// A type alone, for tests and samples: "f32[a, b, 3]".
TensorType parse_tensor_type(std::string_view text);

}  // namespace modelport::ir
