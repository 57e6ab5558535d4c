// Graphs to archives and back; archives that torch saved; archives that are damaged.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "backends/pt2/program_reader.h"
#include "backends/pt2/reader.h"
#include "backends/pt2/writer.h"
#include "backends/pt2/zip_reader.h"
#include "base/error.h"
#include "base/json.h"
#include "base/scratch_folder.h"
#include "ir/text.h"

namespace modelport::pt2 {
namespace {

using Bytes = std::vector<std::byte>;

/// Weights of the right size, each byte its place.
weights::WeightStore made_up_weights(const ir::Graph& graph) {
  weights::WeightStore store;
  for (const ir::ValueId id : graph.weights) {
    const ir::Value& value = graph.value(id);
    weights::Shape shape;
    for (const shape::Int& size : value.tensor().shape) shape.push_back(*size.constant());
    Bytes bytes(*weights::dense_bytes(value.tensor().dtype, shape));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    store.add_owned(value.name, value.tensor().dtype, shape, std::move(bytes));
  }
  return store;
}

Bytes archive_of(const ir::Graph& graph, const weights::WeightStore& weights,
                 const signature::Signature& signature = {}) {
  weights::MemorySink sink;
  write_pt2({.graph = graph, .signature = signature, .weights = weights}, sink);
  return sink.take();
}

Bytes archive_of(std::string_view text) {
  const ir::Graph graph = ir::parse_graph(text);
  return archive_of(graph, made_up_weights(graph));
}

Json program_of(std::string_view text) {
  const ir::Graph graph = ir::parse_graph(text);
  const weights::WeightStore weights = made_up_weights(graph);
  return Json::parse(program_json({.graph = graph, .signature = {}, .weights = weights}));
}

std::string targets_of(const Json& program) {
  std::string targets;
  for (const Json& node : program["graph_module"]["graph"]["nodes"]) {
    targets += node["target"].get<std::string>() + "\n";
  }
  return targets;
}

std::string error_of(const Bytes& archive) {
  try {
    read_pt2(archive, "it.pt2");
  } catch (const ExportError& error) {
    return error.what();
  }
  return "no error";
}

Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

constexpr std::string_view kDecoder =
    R"(graph decoder(%input_ids: i64[batch, seq], %mask: i64[batch, past + seq], %past.0.key: f32[batch, 2, past, 4])
  where batch in 1.. = 3, seq in 2..64 = 7 declared 1.., past in 0.. = 5, u0 in 0.. = 4 from data,
    batch*seq != 11,  # modeling_tiny.py:12 in Tiny.forward, model
    u0 <= 38
  weights @steps: f32[3] buffer, @embed.weight: f32[10, 8], @inv_freq: f32[4] buffer_not_saved, @const.0: i64[3] constant
{
  %1 = aten.embedding(weight=@embed.weight, indices=%input_ids) : f32[batch, seq, 8]  # modeling_tiny.py:9 in Tiny.forward, embed
  %2 = aten.view(self=%1, size=[batch*seq, 8]) : f32[batch*seq, 8]
  %3 = aten.mul.Tensor(self=%2, other=real(seq**-0.5)) : f32[batch*seq, 8]
  %4 = aten.slice.Tensor(self=%mask, dim=1, start=past, end=past + seq) : i64[batch, seq]
  %5, %6 = aten.split.Tensor(self=%3, split_size=4, dim=-1) : f32[batch*seq, 4], f32[batch*seq, 4]
  %7 = aten.nonzero(self=%4) : i64[u0, 2]
  %8 = aten.full(size=[u0, max(batch, seq), past//2], fill_value=-inf) : f32[u0, max(batch, seq), past//2]
  %9 = aten.index.Tensor(self=%past.0.key, indices=[None, None, @const.0]) : f32[batch, 2, 3, 4]
  %10 = aten.add.Tensor(self=@steps, other=1) : f32[3]
  %11 = aten.to.dtype(self=@inv_freq, dtype=f16) : f16[4]
  %12 = aten.gelu(self=%5, approximate="tanh") : f32[batch*seq, 4]
  %13 = aten.sum(self=%6) : f32[]
  %14 = aten.item(self=%13) : float f0
  %15 = aten.add.Tensor(self=%12, other=real(f0)) : f32[batch*seq, 4]
  %16 = aten.any(self=%4) : bool[]
  assume %16 == true  # modeling_tiny.py:30 in Tiny.forward, model
  return logits = %15, full = %8, key = %9, half = %11, count = batch*seq, found = u0
  mutate @steps = %10
}
)";

}  // namespace

TEST_CASE("a graph comes back from its archive as it was") {
  const ir::Graph graph = ir::parse_graph(kDecoder);
  const weights::WeightStore weights = made_up_weights(graph);
  const Bytes archive = archive_of(graph, weights);
  const Pt2Program back = read_pt2(archive, "decoder.pt2");
  CHECK(ir::print(back.graph) == ir::print(graph));
  CHECK(ir::same_program(back.graph, graph));
  REQUIRE(back.weights.weights().size() == weights.weights().size());
  for (const weights::Weight& weight : weights.weights()) {
    const weights::Weight& read = back.weights.at(weight.name);
    CHECK(read.shape == weight.shape);
    CHECK(std::ranges::equal(read.bytes, weight.bytes));
  }
}

TEST_CASE("the signature comes back with constants, names and structures") {
  const ir::Graph graph = ir::parse_graph("graph g(%a.0: f32[2])\n{\n  return y.z = %a.0\n}\n");
  signature::Signature signature;
  signature.inputs = {{"a.0", true, {}},       {"flag", false, {true}},
                      {"none", false, {}},     {"n", false, {std::int64_t{7}}},
                      {"scale", false, {0.5}}, {"mode", false, {std::string("a \"b\"\n")}}};
  signature.outputs = {{"y.z", true, {}}, {"two", false, {std::int64_t{2}}}};
  signature.argument_names = {"a", "flag", "none", "n", "scale", "mode"};
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const std::string tuple = R"({"type": "builtins.tuple", "context": "null", "children_spec": [)";
  signature.input_structure =
      "[1, " + tuple + tuple + "]}, " +
      R"({"type": "builtins.dict", "context": "[\"a\", \"flag\", \"none\", \"n\", \"scale\", \"mode\"]", )" +
      R"("children_spec": [)" + tuple + leaf + "]}, " + leaf + ", " + leaf + ", " + leaf + ", " +
      leaf + ", " + leaf + "]}]}]";
  signature.output_structure = "[1, " + tuple + leaf + ", " + leaf + "]}]";
  const Pt2Program back = read_pt2(archive_of(graph, {}, signature), "g.pt2");
  CHECK(back.signature == signature);
}

TEST_CASE("the same graph gives the same bytes, and weights start at multiples of 64") {
  const Bytes archive = archive_of(kDecoder);
  CHECK(archive == archive_of(kDecoder));
  const ZipArchive zip(archive, "it");
  int weights = 0;
  for (const ZipArchive::Entry& entry : zip.entries()) {
    if (entry.size == 0) continue;
    CHECK((zip.read(entry).bytes.data() - archive.data()) % 64 == 0);
    weights += entry.name.find("/weight_") != std::string::npos ? 1 : 0;
  }
  CHECK(weights == 2);
}

TEST_CASE("a tied weight is written once") {
  const ir::Graph graph = ir::parse_graph(
      "graph g(%x: f32[2])\n  weights @a: f32[2], @b: f32[2]\n{\n"
      "  %1 = aten.add.Tensor(self=@a, other=@b) : f32[2]\n  return y = %1\n}\n");
  weights::WeightStore store;
  store.add_owned("a", Dtype::f32, {2}, Bytes(8, std::byte{1}));
  store.add_alias("b", "a");
  const Bytes archive = archive_of(graph, store);
  const ZipArchive zip(archive, "it");
  CHECK(zip.find("model/data/weights/weight_0") != nullptr);
  CHECK(zip.find("model/data/weights/weight_1") == nullptr);
  const Pt2Program back = read_pt2(archive, "it");
  CHECK(back.weights.weights().size() == 1);
  CHECK(back.weights.find("b") == back.weights.find("a"));
}

TEST_CASE("a symbolic number is computed once, before its first use") {
  const Json program = program_of(
      "graph g(%x: f32[a, b])\n  where a in 3.. = 3, b in 3.. = 4\n{\n"
      "  %1 = aten.zeros(size=[a*b + 1]) : f32[a*b + 1]\n"
      "  %2 = aten.ones(size=[2*a*b + 2, a*b]) : f32[2*a*b + 2, a*b]\n"
      "  return y = %1, z = %2\n}\n");
  CHECK(targets_of(program) ==
        "torch.ops.aten.sym_size.int\ntorch.ops.aten.sym_size.int\n_operator.mul\n_operator.add\n"
        "torch.ops.aten.zeros.default\n_operator.mul\n_operator.mul\n_operator.add\ntorch.ops.aten."
        "ones.default\n");
}

TEST_CASE("a size that only a sum holds is solved for, and stops where it leaves a remainder") {
  const Json program = program_of(
      "graph g(%x: f32[a], %y: f32[2*b + a])\n  where a in 3.. = 3, b in 3.. = 4\n{\n"
      "  %1 = aten.zeros(size=[b]) : f32[b]\n  return z = %1\n}\n");
  CHECK(targets_of(program) ==
        "torch.ops.aten.sym_size.int\ntorch.ops.aten.sym_size.int\n_operator.sub\n_operator."
        "floordiv\n_operator.mul\n_operator.add\ntorch.ops.aten.sym_size.int\n_operator.eq\n"
        "torch.ops.aten._assert_scalar.default\ntorch.ops.aten.zeros.default\n");
}

TEST_CASE("a size of nothing is tested for, which torch's own ranges let through") {
  const Json program = program_of(
      "graph g(%x: f32[a])\n  where a in 1.. = 3\n{\n"
      "  %1 = aten.relu(self=%x) : f32[a]\n  return z = %1\n}\n");
  CHECK(targets_of(program) ==
        "torch.ops.aten.sym_size.int\n_operator.ge\ntorch.ops.aten._assert_scalar.default\n"
        "torch.ops.aten.relu.default\n");
}

TEST_CASE("a size may divide by a symbol") {
  const Json program = program_of(
      "graph g(%x: f32[a, b])\n  where a in 3.. = 3, b in 3.. = 4\n{\n"
      "  %1 = aten.zeros(size=[8*a//b, a//(b + 1)]) : f32[8*a//b, a//(b + 1)]\n  return z = "
      "%1\n}\n");
  CHECK(targets_of(program) ==
        "torch.ops.aten.sym_size.int\n_operator.mul\ntorch.ops.aten.sym_size.int\n_operator."
        "floordiv\n"
        "_operator.add\n_operator.floordiv\ntorch.ops.aten.zeros.default\n");
}

TEST_CASE("sympy is told not to compare the operands of a max, and that is read back") {
  const std::string text =
      "graph g(%x: f32[n])\n  where n in 1.. = 9\n{\n"
      "  %1 = aten.slice.Tensor(self=%x, start=4) : f32[max(n - 4, 0)]\n  return y = %1\n}\n";
  CHECK(program_of(text).dump().find("Integer(0), evaluate=False)") != std::string::npos);
  const Bytes archive = archive_of(text);
  CHECK(ir::same_program(read_pt2(archive, "g.pt2").graph, ir::parse_graph(text)));
}

TEST_CASE("an argument without default that is None is written, and left out again when read") {
  const std::string text =
      "graph g(%x: f32[1, 2, 4, 4])\n{\n  %1 = aten.upsample_nearest2d.vec(input=%x, "
      "scale_factors=[2.0, 2.0]) : f32[1, 2, 8, 8]\n  return y = %1\n}\n";
  const Json node = program_of(text)["graph_module"]["graph"]["nodes"][0];
  CHECK(node["inputs"][1] ==
        Json{{"name", "output_size"}, {"arg", {{"as_none", true}}}, {"kind", 1}});
  CHECK(ir::print(read_pt2(archive_of(text), "it").graph) == text);
}

TEST_CASE("torch is told of an example away from 0 and 1, on which it would specialise") {
  const Json program = program_of(
      "graph g(%x: f32[a, b])\n  where a in 0.. = 1, b in 0..1 = 1\n{\n  return y = %x\n}\n");
  const Json& sizes = program["graph_module"]["graph"]["tensor_values"]["x"]["sizes"];
  CHECK(sizes[0]["as_expr"]["hint"]["as_int"] == 49);
  CHECK(sizes[1]["as_expr"]["hint"]["as_int"] == 1);
  CHECK(sizes[0]["as_expr"]["expr_str"] == "Symbol('s0', integer=True)");
}

TEST_CASE("an output that shares memory with a buffer that is written is copied first") {
  const Json program = program_of(
      "graph g(%x: f32[3])\n  weights @b: f32[3] buffer\n{\n"
      "  %1 = aten.add.Tensor(self=@b, other=%x) : f32[3]\n  %2 = aten.view(self=@b, size=[3, 1]) "
      ": f32[3, 1]\n"
      "  return old = @b, view = %2, new = %1\n  mutate @b = %1\n}\n");
  CHECK(targets_of(program) ==
        "torch.ops.aten.add.Tensor\ntorch.ops.aten.view.default\ntorch.ops.aten.clone.default\n"
        "torch.ops.aten.clone.default\n");
  const Json& specs = program["graph_module"]["signature"]["output_specs"];
  CHECK(specs[0].contains("buffer_mutation"));
  CHECK(specs[1]["user_output"]["arg"]["as_tensor"]["name"] == "clone");
}

TEST_CASE("a text among the outputs is refused with a way out") {
  const ir::Graph graph = ir::parse_graph("graph g(%x: f32[3])\n{\n  return y = %x\n}\n");
  signature::Signature signature;
  signature.outputs = {{"y", true, {}}, {"kind", false, {std::string("greedy")}}};
  CHECK_THROWS_WITH_AS(archive_of(graph, {}, signature),
                       doctest::Contains("cannot return the text \"greedy\""), ExportError);
}

TEST_CASE("a file that cannot be written whole leaves the old one") {
  const ScratchFolder folder;
  const std::filesystem::path path = folder.write("model.pt2", "old");
  const ir::Graph graph =
      ir::parse_graph("graph g(%x: f32[3])\n  weights @w: f32[3]\n{\n  return y = @w\n}\n");
  const weights::WeightStore empty;
  CHECK_THROWS_AS(write_pt2({.graph = graph, .signature = {}, .weights = empty}, path),
                  ExportError);
  CHECK(read_file(path.string()).size() == 3);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  const weights::WeightStore weights = made_up_weights(graph);
  write_pt2({.graph = graph, .signature = {}, .weights = weights}, path);
  const Pt2Program back = read_pt2(path);
  CHECK(back.weights.at("w").file != nullptr);
}

TEST_CASE("an archive cut off anywhere is an error, never a crash") {
  const Bytes whole = archive_of(kDecoder);
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_MESSAGE(error_of(cut).find("E0103") != std::string::npos, size);
  }
}

TEST_CASE("a changed byte of the program or of a weight fails its check sum") {
  for (const std::string name : {"model/models/model.json", "model/data/weights/weight_0"}) {
    Bytes archive = archive_of(kDecoder);
    const ZipArchive zip(archive, "it");
    const auto data = zip.read(zip.at(name)).bytes;
    archive[static_cast<std::size_t>(data.data() - archive.data()) + 5] ^= std::byte{1};
    CHECK(error_of(archive).find("wrong check sum") != std::string::npos);
  }
}

TEST_CASE("a large weight is held against its check sum to its last byte") {
  const ir::Graph graph =
      ir::parse_graph("graph g(%x: f32[3])\n  weights @w: u8[50000003]\n{\n  return y = @w\n}\n");
  Bytes archive = archive_of(graph, made_up_weights(graph));
  CHECK(error_of(archive) == "no error");
  const ZipArchive zip(archive, "it");
  const auto data = zip.read(zip.at("model/data/weights/weight_0")).bytes;
  archive[static_cast<std::size_t>(&data.back() - archive.data())] ^= std::byte{1};
  CHECK(error_of(archive).find("wrong check sum") != std::string::npos);
}

TEST_CASE("a program that torch saved is read: buffers written in place, ties, constants") {
  const Pt2Program program =
      read_pt2(read_file("tests/corpus/fuzz_pt2/torch_state.pt2"), "torch_state.pt2");
  CHECK(ir::print(program.graph) == R"(graph graph(%x: f32[2, 4])
  weights @tied: f32[3, 4],
    @l.weight: f32[3, 4],
    @l.bias: f32[3],
    @b: f32[3] buffer,
    @nb: f32[3] buffer_not_saved,
    @c: f32[3] constant
{
  %1 = aten.add.Tensor(self=@b, other=1) : f32[3]  # modeling_tiny.py:13 in forward
  %2 = aten.linear(input=%x, weight=@l.weight, bias=@l.bias) : f32[2, 3]  # modeling_tiny.py:14 in forward
  %3 = aten.add.Tensor(self=%2, other=%1) : f32[2, 3]  # modeling_tiny.py:14 in forward
  %4 = aten.add.Tensor(self=%3, other=@nb) : f32[2, 3]  # modeling_tiny.py:14 in forward
  %5 = aten.add.Tensor(self=%4, other=@c) : f32[2, 3]  # modeling_tiny.py:14 in forward
  return output = %5
  mutate @b = %1
}
)");
  CHECK(program.weights.find("tied") == program.weights.find("l.weight"));
}

TEST_CASE("a program that torch saved is read: symbolic sizes and numbers from data") {
  const Pt2Program program =
      read_pt2(read_file("tests/corpus/fuzz_pt2/torch_symbols.pt2"), "torch_symbols.pt2");
  std::string ops;
  for (const ir::Node& node : program.graph.nodes()) ops += node.op + " ";
  CHECK(ops == "aten.item aten.zeros aten.mul.Tensor aten.add.Tensor aten.nonzero aten.arange ");
  REQUIRE(program.graph.nodes().size() == 6);
  const std::string symbol(
      *program.graph.value(program.graph.inputs[0]).tensor().shape[1].as_symbol());
  CHECK(shape::print(program.graph.value(program.graph.nodes()[1].results[0]).tensor().shape[1]) ==
        symbol + " + 1");
  CHECK(program.signature.inputs.size() == 4);
  CHECK(program.signature.inputs[1].name == "pair.0");
}

TEST_CASE("what a graph cannot hold is named, all of it") {
  std::string text = program_of(
                         "graph g(%x: f32[3])\n{\n  %1 = aten.relu(self=%x) : f32[3]\n  %2 = "
                         "aten.sin(self=%1) : f32[3]\n  return y = %2\n}\n")
                         .dump();
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("torch.ops.aten.relu.default", "torch.ops.higher_order.cond");
  replace("torch.ops.aten.sin.default", "somewhere.else");
  const Json program = Json::parse(text);
  try {
    ProgramReader(program).read();
    FAIL("no error");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics().size() == 2);
    CHECK(std::string(error.what()).find("torch.ops.higher_order.cond") != std::string::npos);
    CHECK(std::string(error.what()).find("somewhere.else") != std::string::npos);
  }
}

}  // namespace modelport::pt2
