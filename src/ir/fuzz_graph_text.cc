// Any bytes: the parser answers with a graph or with an error. What parses prints to text that
// gives the same graph and the same text again, and the verifier and the passes of this room
// survive it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ir/graph.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace {

void require(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelport;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ir::Graph graph;
  try {
    graph = ir::parse_graph(bytes);
  } catch (const ExportError&) {
    return 0;
  }
  const std::string text = ir::print(graph);
  ir::Graph again = ir::parse_graph(text);
  require(ir::print(again) == text, "printed text changes when it is parsed and printed again");
  require(ir::same_program(graph, again), "a graph changes when it is printed and parsed");
  require(again.dims == graph.dims, "dims change when they are printed and parsed");
  const bool sound = ir::violations(graph).empty();
  ir::drop_dead_nodes(again);
  if (sound) require(ir::violations(again).empty(), "a sound graph without its dead nodes is not");
  try {
    again.substitute({{"a", shape::Int::symbol("b") + 1}, {"seq", 1}});
  } catch (const ExportError&) {
    return 0;  // a division by zero, a number that does not fit
  }
  (void)ir::print(again);
  return 0;
}
