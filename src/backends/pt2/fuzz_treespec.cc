// Fuzz target: any text as the structure of a call or a result gives names or an ExportError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backends/pt2/treespec.h"
#include "base/error.h"

namespace {

using namespace modelport;

std::size_t leaves(const pt2::Structure& structure) {
  if (structure.is_leaf()) return 1;
  std::size_t count = 0;
  for (const pt2::Structure& child : structure.children) count += leaves(child);
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const pt2::Structure structure =
        pt2::parse_structure({reinterpret_cast<const char*>(data), size});
    if (pt2::output_names(structure).size() != leaves(structure)) std::abort();
    pt2::input_names(structure, {"x"});
  } catch (const ExportError&) {
  }
  return 0;
}
