// What a program is told of its caller: the device, and inputs that it writes to.
#include <doctest/doctest.h>

#include "backends/pt2/json_read.h"
#include "backends/pt2/reader.h"
#include "backends/pt2/writer.h"
#include "ir/text.h"
#include "weights/sink.h"

namespace modelport::pt2 {
namespace {

constexpr std::string_view kStep = R"(graph step(%cache: f32[4, 2], %at: i64[1], %x: f32[1, 2])
{
  %1 = aten.index_copy(self=%cache, dim=0, index=%at, source=%x) : f32[4, 2]
  %2 = aten.arange(end=4) : i64[4]
  %3 = aten.zeros_like(self=%2) : i64[4]
  return cache = %1, same = %x, places = %3
}
)";

const signature::Signature kWritten{
    .inputs = {{"cache", true, {}}, {"at", true, {}}, {"x", true, {}}},
    .outputs = {{"cache", true, {}}, {"same", true, {}}, {"places", true, {}}},
    .given = {{"cache", "cache"}, {"same", "x"}}};

Json program_on(std::string_view device) {
  const ir::Graph graph = ir::parse_graph(kStep);
  return Json::parse(program_json({.graph = graph,
                                   .signature = kWritten,
                                   .weights = weights::WeightStore(),
                                   .device = std::string(device)}));
}

}  // namespace

TEST_CASE("what is made from nothing names the device, and so does every type") {
  const Json graph = program_on("cuda:0")["graph_module"]["graph"];
  const Json cuda = {{"type", "cuda"}, {"index", 0}};
  for (const Json& tensor : graph["tensor_values"]) CHECK(tensor["device"] == cuda);
  int named = 0;
  for (const Json& node : graph["nodes"]) {
    for (const Json& input : node["inputs"]) {
      if (input["name"] != "device") continue;
      ++named;
      CHECK(node["target"] == "torch.ops.aten.arange.default");
      CHECK(input["arg"] == Json{{"as_device", cuda}});
    }
  }
  CHECK(named == 1);
}

TEST_CASE("the rest of a shape is written out where there may be no elements to count") {
  const auto rest = [](std::string_view least) {
    const ir::Graph graph = ir::parse_graph(
        "graph g(%x: f32[rows, 4])\n  where rows in " + std::string(least) +
        ".. = 3\n{\n  %1 = aten.view(self=%x, size=[rows, 2, -1]) : f32[rows, 2, 2]\n"
        "  return y = %1\n}\n");
    const weights::WeightStore none;
    const Json program =
        Json::parse(program_json({.graph = graph, .signature = {}, .weights = none}));
    const Json nodes = program["graph_module"]["graph"]["nodes"];
    return nodes.back()["inputs"][1]["arg"]["as_sym_ints"][2]["as_int"].get<int>();
  };
  CHECK(rest("1") == -1);
  CHECK(rest("0") == 2);
}

TEST_CASE("an input that the model writes to is written, one that it only gives back is not") {
  const Json specs = program_on("cpu")["graph_module"]["signature"]["output_specs"];
  REQUIRE(specs.size() == 4);
  CHECK(specs[0]["user_input_mutation"]["user_input_name"] == "cache");
  CHECK(specs[0]["user_input_mutation"]["arg"] == specs[1]["user_output"]["arg"]["as_tensor"]);
}

TEST_CASE("a graph from a program that writes to an input gives what it would write") {
  const ir::Graph graph = ir::parse_graph(kStep);
  const weights::WeightStore none;
  weights::MemorySink sink;
  write_pt2({.graph = graph, .signature = kWritten, .weights = none}, sink);
  CHECK(ir::print(read_pt2(sink.take(), "step.pt2").graph) == kStep);
}

}  // namespace modelport::pt2
