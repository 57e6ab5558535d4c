// Fuzz target: any bytes give a summary or an ExportError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "backends/executorch/reader.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelport;
  // At an address as a mapped file has it.
  std::vector<std::uint64_t> whole((size + 7) / 8);
  if (size != 0) std::memcpy(whole.data(), data, size);
  try {
    const executorch::ProgramSummary summary = executorch::summarize_program(
        {reinterpret_cast<const std::byte*>(whole.data()), size}, "fuzz");
    for (const executorch::ProgramMethod& method : summary.methods) {
      std::size_t calls = 0;
      for (const auto& [name, count] : method.operators) calls += count;
      if (calls > method.instructions) std::abort();
    }
  } catch (const ExportError&) {
  }
  return 0;
}
