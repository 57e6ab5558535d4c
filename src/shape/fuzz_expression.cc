// Fuzz target: any bytes either are an expression whose text parses back to an equal one, or an
// ExportError.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "shape/int.h"
#include "shape/real.h"
#include "shape/tree.h"

namespace {

using namespace modelport::shape;

template <class Parse>
void round_trip(std::string_view text, Parse parse) {
  using Value = decltype(parse(text));
  Value value;
  try {
    value = parse(text);
  } catch (const modelport::ExportError&) {
    return;
  }
  const std::string printed = print(value);
  bool same = false;
  try {
    same = parse(printed) == value;
  } catch (const modelport::ExportError& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  if (same) return;
  std::fprintf(stderr, "does not parse back: %s\n", printed.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  round_trip(text, [](std::string_view t) { return parse_int(t); });
  round_trip(text, [](std::string_view t) { return parse_real(t); });
  round_trip(text, [](std::string_view t) { return parse_bool(t); });
  return 0;
}
