// Graphs in ExecuTorch's dialect (emit.h) as a .pte file, with the weights inside or in a .ptd file
// beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/executorch/data.h"
#include "backends/executorch/emit.h"
#include "signature/limits.h"
#include "weights/stream.h"

namespace modelport::executorch {

struct TensorLiteral {
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  std::string bytes;
};
/// A method without inputs whose outputs are these. Clients read their settings from such methods.
struct ConstantMethod {
  using Item = std::variant<std::int64_t, bool, double, std::string, TensorLiteral>;
  std::string name;
  std::vector<Item> items;
};

struct ExecutorchOptions {
  bool weights_beside = false;     // in <file without .pte>.ptd
  bool checks_as_outputs = false;  // what a graph assumes of data comes behind its outputs
  bool with_limits = true;         // as the constant methods kLimitsMethod and kOutputsMethod
};

/// What each method is valid for, as {method: limits}, and the names of its outputs, as JSON.
inline constexpr std::string_view kLimitsMethod = "modelport_limits";
inline constexpr std::string_view kOutputsMethod = "modelport_outputs";

struct ExecutorchRequest {
  std::vector<MethodSource> methods;
  std::vector<ConstantMethod> constant_methods = {};
  std::vector<Delegate> delegates = {};
  std::vector<NamedBlob> named_data = {};
  ExecutorchOptions options = {};
};

struct MethodWritten {
  std::string name;
  std::uint64_t arena_bytes = 0;
  std::uint64_t least_arena_bytes = 0;  // what is needed at once at the worst instruction
  std::uint64_t state_bytes = 0;
  std::size_t instructions = 0;
  GivenBounds assumed_bounds = {};  // of sizes that data decides, where nothing says one
};
struct ExecutorchWritten {
  std::vector<std::filesystem::path> files;  // the program first
  std::vector<MethodWritten> methods;        // without constant methods
  std::vector<weights::ConversionLoss> losses;
};

/// What a method is valid for: the graph's own limits, and the bounds that its memory is planned
/// with. With `with_checks`, conditions on data are among its outputs.
signature::Limits limits_of(const MethodSource& source, bool with_checks);

/// What the method would take, with nothing written.
MethodWritten measure(const MethodSource& source);

/// Throws ExportError with everything that the format cannot hold; what is at `path` is then as it
/// was. Same request, same bytes.
ExecutorchWritten write_executorch(const ExecutorchRequest& request,
                                   const std::filesystem::path& path);

}  // namespace modelport::executorch
