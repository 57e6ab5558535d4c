// What a graph has to be at the end of a pipeline, so that a writer need not ask: as data, held
// against every graph that is lowered.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/error.h"
#include "ir/graph.h"

namespace modelport::passes {

struct Contract {
  std::string_view target;
  /// Whose operators nodes are: "onnx." of "onnx.Add". Empty: of anybody but those below.
  std::span<const std::string_view> dialects;
  std::span<const std::string_view> foreign = {};
  bool complex_numbers = true;     // values may be complex
  bool plain_numbers = true;       // results may be numbers that are no tensors
  bool symbolic_arguments = true;  // arguments may be sizes that a run decides
};

/// A weight in few bits, and weights in one tensor, are nodes until the writer stores them.
inline constexpr std::array<std::string_view, 4> kOnnxDialects{
    "onnx.", "com.microsoft.", "modelport.quantized", "modelport.joined"};
inline constexpr std::array<std::string_view, 1> kExecutorchDialects{"et."};
inline constexpr std::array<std::string_view, 3> kNotTorchs{"onnx.", "et.", "modelport."};

inline constexpr Contract kOnnxContract{.target = "onnx",
                                        .dialects = kOnnxDialects,
                                        .complex_numbers = false,
                                        .plain_numbers = false,
                                        .symbolic_arguments = false};
inline constexpr Contract kExecutorchContract{
    .target = "executorch", .dialects = kExecutorchDialects, .complex_numbers = false};
inline constexpr Contract kPt2Contract{.target = "pt2", .dialects = {}, .foreign = kNotTorchs};

/// All violations at once; none of them is the user's fault.
Diagnostics violations(const ir::Graph& graph, const Contract& contract);
/// Throws InternalError with the first of them.
void hold(const ir::Graph& graph, const Contract& contract);

}  // namespace modelport::passes
