// Fuzz target: any bytes, as an archive or as the program inside one, give a graph that verifies or
// an ExportError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "backends/pt2/program_reader.h"
#include "backends/pt2/reader.h"
#include "base/error.h"
#include "base/json.h"
#include "ir/verify.h"

namespace {

using namespace modelport;

void read_as_archive(std::span<const std::byte> bytes) {
  try {
    const pt2::Pt2Program program = pt2::read_pt2(bytes, "fuzz");
    if (!ir::violations(program.graph).empty()) std::abort();
    std::uint8_t sum = 0;
    for (const weights::Weight& weight : program.weights.weights()) {
      for (const std::byte byte : weight.bytes) sum ^= static_cast<std::uint8_t>(byte);
    }
    // Every byte was there to be read.
    [[maybe_unused]] static volatile std::uint8_t read;
    read = sum;
  } catch (const ExportError&) {
  }
}

/// The check sums of an archive keep mutations away from the program, so it is a target of its own.
void read_as_program(std::string_view text) {
  try {
    const Json json = parse_json(text, {.name = "fuzz"});
    pt2::ProgramReader reader(json);
    reader.read();
    if (!ir::violations(reader.graph).empty()) std::abort();
  } catch (const ExportError&) {
  } catch (const Json::exception&) {  // read_pt2 turns these into an ExportError
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_as_archive({reinterpret_cast<const std::byte*>(data), size});
  read_as_program({reinterpret_cast<const char*>(data), size});
  return 0;
}
