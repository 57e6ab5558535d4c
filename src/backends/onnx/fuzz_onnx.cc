// Fuzz target: any bytes give a summary or an ExportError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "backends/onnx/reader.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelport;
  try {
    const onnx::ModelSummary summary =
        onnx::summarize({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
    std::size_t counted = 0;
    for (const auto& [op, count] : summary.operators) counted += count;
    if (counted < summary.nodes.size()) std::abort();
  } catch (const ExportError&) {
  }
  return 0;
}
