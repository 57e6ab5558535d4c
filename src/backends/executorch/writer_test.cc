// .pte files: what is stored once, what a reader finds in them, and that the same graph gives the
// same bytes.
#include "backends/executorch/writer.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>

#include "backends/executorch/reader.h"
#include "base/scratch_folder.h"
#include "ir/text.h"

namespace modelport::executorch {
namespace {

constexpr std::string_view kModel =
    "graph g(%x: f32[batch, 4])\n  where batch in 1..8 = 2\n"
    "  weights @w: f32[4, 4], @same: f32[4, 4], @unused: f32[9], @k: f32[2, 3] buffer, @v: f32[2, "
    "2] "
    "buffer\n{\n"
    "  %1 = et.aten.mm.out(self=%x, mat2=@w) : f32[batch, 4]\n"
    "  %2 = et.aten.mm.out(self=%1, mat2=@same) : f32[batch, 4]\n"
    "  %3 = et.view(self=%2, size=[4*batch]) : f32[4*batch]\n"
    "  %4 = et.aten.relu.out(self=@k) : f32[2, 3]\n"
    "  %5 = et.aten.relu.out(self=@v) : f32[2, 2]\n"
    "  return y = %3, n = 4*batch\n"
    "  mutate @k = %4\n  mutate @v = %5\n}\n";

weights::WeightStore store() {
  weights::WeightStore weights;
  const auto add = [&](std::string name, weights::Shape shape, float value) {
    std::size_t count = 1;
    for (const auto size : shape) count *= static_cast<std::size_t>(size);
    std::vector<std::byte> bytes(count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(bytes.data() + i * sizeof(float), &value, sizeof(float));
    weights.add_owned(std::move(name), Dtype::f32, std::move(shape), std::move(bytes));
  };
  add("w", {4, 4}, 1);
  add("same", {4, 4}, 1);
  add("unused", {9}, 2);
  add("k", {2, 3}, 0);
  add("v", {2, 2}, 0);
  return weights;
}

std::string file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ProgramSummary read(const std::string& bytes) {
  return summarize_program(std::as_bytes(std::span(bytes)), "it");
}

struct Written {
  ExecutorchWritten report;
  std::string bytes;
};

Written written(std::string_view text, ExecutorchRequest more = {}) {
  const ir::Graph graph = ir::parse_graph(text);
  const weights::WeightStore weights = store();
  const ScratchFolder folder;
  more.methods.push_back({.graph = graph, .weights = weights});
  Written result;
  result.report = write_executorch(more, folder.path / "m.pte");
  result.bytes = file_bytes(folder.path / "m.pte");
  return result;
}

}  // namespace

TEST_CASE("a reader finds methods, operators, constants and state as they were written") {
  ExecutorchRequest more;
  more.constant_methods = {{"get_eos_ids", {std::int64_t{3}, std::int64_t{5}}}};
  more.named_data = {{"key", blob_of("some bytes")}};
  const ProgramSummary summary = read(written(kModel, std::move(more)).bytes);
  REQUIRE(summary.methods.size() == 4);
  const ProgramMethod& method = summary.methods[0];
  CHECK(method.name == "forward");
  CHECK_FALSE(method.is_constant());
  CHECK(method.operators.at("aten::mm.out") == 2);
  CHECK(method.operators.at("aten::sym_size.int") == 1);
  REQUIRE(method.inputs.size() == 1);
  const auto& input = std::get<TensorSummary>(method.inputs[0]);
  CHECK(input.is_dynamic);
  CHECK(input.sizes == std::vector<std::int64_t>{8, 4});
  CHECK(std::get<std::int64_t>(method.outputs[1]) == 0);  // computed when it runs
  CHECK(summary.methods[1].is_constant());
  CHECK(std::get<std::int64_t>(summary.methods[1].outputs[1]) == 5);
  CHECK(summary.methods[2].name == kLimitsMethod);
  REQUIRE(summary.named_data.size() == 1);
  CHECK(summary.named_data[0].bytes == 10);
}

TEST_CASE(
    "equal weights are stored once, unused ones not at all, and zeros of state once for all") {
  const ProgramSummary summary = read(written(kModel).bytes);
  CHECK(summary.constants == 1);
  CHECK(summary.constant_bytes == 64);
  CHECK(summary.initial_bytes == 24);  // of the larger state
  CHECK(summary.methods[0].arenas[1] == 48);
}

TEST_CASE("the same request gives the same bytes") {
  CHECK(written(kModel).bytes == written(kModel).bytes);
}

TEST_CASE("state is written where it lies, and no copy is made at the end") {
  const ProgramMethod method = read(written(kModel).bytes).methods[0];
  CHECK(method.operators.count("aten::copy_") == 0);
}

TEST_CASE("a file that ends early is refused wherever it ends") {
  const std::string whole = written(kModel).bytes;
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    CAPTURE(length);
    CHECK_THROWS_AS(read(whole.substr(0, length)), ExportError);
  }
}

TEST_CASE("every axis without a bound is reported at once, with what to type") {
  const std::string text =
      "graph g(%x: f32[a, b])\n  where a in 1.. = 2, b in 1.. = 2\n{\n"
      "  %1 = et.aten.relu.out(self=%x) : f32[a, b]\n  return y = %1\n}\n";
  try {
    written(text);
    FAIL("it was written");
  } catch (const ExportError& error) {
    REQUIRE(error.diagnostics().size() == 2);
    CHECK(error.diagnostics()[1].ways_out[0] == "dims={\"b\": (1, 2048)}");
  }
}

TEST_CASE("a node of another dialect is refused with its name") {
  const std::string text =
      "graph g(%x: f32[2])\n{\n  %1 = aten.relu(self=%x) : f32[2]\n  return y = %1\n}\n";
  CHECK_THROWS_WITH_AS(written(text), doctest::Contains("aten.relu"), ExportError);
}

TEST_CASE("two methods of one name are refused") {
  ExecutorchRequest more;
  more.constant_methods = {{"forward", {std::int64_t{1}}}};
  CHECK_THROWS_WITH_AS(written(kModel, std::move(more)), doctest::Contains("forward"), ExportError);
}

}  // namespace modelport::executorch
