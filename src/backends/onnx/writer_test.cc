// ONNX files: where weights go, what is stored once, and that the same graph gives the same bytes.
#include "backends/onnx/writer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "backends/onnx/reader.h"
#include "ir/text.h"

namespace modelport::onnx {
namespace {

/// Two numbers to embed, and a product with a matrix that is used transposed.
constexpr std::string_view kModel =
    "graph g(%i: i64[batch])\n  where batch in 1.. = 2\n"
    "  weights @table: f32[300, 4], @w: f32[300, 4], @copy: f32[2], @same: f32[2]\n{\n"
    "  %1 = onnx.Gather(inputs=[@table, %i], axis=0) : f32[batch, 4]  # modeling_tiny.py:7 in "
    "Tiny.forward, embed\n"
    "  %2 = onnx.Transpose(inputs=[@w], perm=[1, 0]) : f32[4, 300]\n"
    "  %3 = onnx.MatMul(inputs=[%1, %2]) : f32[batch, 300]\n"
    "  %4 = onnx.Constant(dtype=f32, shape=[], values=[2.5]) : f32[]\n"
    "  %5 = onnx.Mul(inputs=[%3, %4]) : f32[batch, 300]\n"
    "  %6 = onnx.Concat(inputs=[@copy, @same], axis=0) : f32[4]\n"
    "  return y = %5, z = %6\n}\n";

weights::WeightStore store() {
  weights::WeightStore weights;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape, float first) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * sizeof(float));
    for (std::int64_t i = 0; i < count; ++i) {
      const float number = first + static_cast<float>(i);
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(float), &number,
                  sizeof(float));
    }
    weights.add_owned(std::move(name), Dtype::f32, weights::Shape(shape.begin(), shape.end()),
                      std::move(bytes));
  };
  add("table", {300, 4}, 0);
  add("w", {300, 4}, 5000);
  add("copy", {2}, 7);
  add("same", {2}, 7);
  return weights;
}

ModelSummary read(const std::string& bytes) {
  return summarize(std::as_bytes(std::span(bytes)), "it");
}

const WeightSummary* find(const ModelSummary& model, std::string_view name) {
  const auto found = std::ranges::find(model.weights, name, &WeightSummary::name);
  return found == model.weights.end() ? nullptr : &*found;
}

std::filesystem::path fresh_folder() {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("modelport_onnx_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a model in memory holds its weights, and a transposed one is stored transposed") {
  const ir::Graph graph = ir::parse_graph(kModel);
  const weights::WeightStore weights = store();
  const std::string bytes = onnx_bytes({.graph = graph, .weights = weights, .options = {}});
  const ModelSummary model = read(bytes);
  CHECK(model.operators.at("MatMul") == 1);
  CHECK(model.operators.count("Transpose") == 0);
  REQUIRE(find(model, "w.transposed") != nullptr);
  CHECK(find(model, "w.transposed")->shape == std::vector<std::int64_t>{4, 300});
  CHECK(find(model, "w") == nullptr);
  // The first row of the transposed matrix is its first column: 5000, 5004, 5008.
  const std::array<float, 3> row{5000, 5004, 5008};
  const std::string wanted(reinterpret_cast<const char*>(row.data()), sizeof(row));
  CHECK(bytes.find(wanted) != std::string::npos);
}

TEST_CASE("a matrix that is used as it is, too, is not stored a second time") {
  std::string text(kModel);
  text.replace(text.find("inputs=[@w]"), 11, "inputs=[@table]");
  const ir::Graph graph = ir::parse_graph(text);
  const weights::WeightStore weights = store();
  const ModelSummary model = read(onnx_bytes({.graph = graph, .weights = weights, .options = {}}));
  CHECK(model.operators.at("Transpose") == 1);
  CHECK(find(model, "table") != nullptr);
  CHECK(find(model, "table.transposed") == nullptr);
}

TEST_CASE("weights of the same contents are stored once") {
  const ir::Graph graph = ir::parse_graph(kModel);
  const weights::WeightStore weights = store();
  const ModelSummary model = read(onnx_bytes({.graph = graph, .weights = weights, .options = {}}));
  CHECK(find(model, "copy") != nullptr);
  CHECK(find(model, "same") == nullptr);
  const auto concat = std::ranges::find(model.nodes, "Concat", &NodeSummary::op);
  REQUIRE(concat != model.nodes.end());
  CHECK(concat->inputs == std::vector<std::string>{"copy", "copy"});
}

TEST_CASE("branches are graphs in the node, which see the values around it") {
  const ir::Graph graph = ir::parse_graph(
      "graph g(%c: bool[1], %x: f32[b, 4], %y: f32[b, 4])\n  where b in 1.. = 2\n{\n"
      "  %1, %2 = onnx.If(inputs=[%c, %x, %y], then=[\"half = Clip(input_1, , input_2)\", "
      "\"result_0, result_1 = com.microsoft.Pair(half) {axis=-1, factor=0.5}\"], "
      "else=[\"result_0 = Neg(input_1)\", \"result_1 = Abs(input_2)\"]) : f32[b, 4], f32[b, 4]\n"
      "  return a = %1, b = %2\n}\n");
  const weights::WeightStore weights;
  const std::string bytes = onnx_bytes({.graph = graph, .weights = weights, .options = {}});
  const ModelSummary model = read(bytes);
  const std::map<std::string, std::size_t> wanted{
      {"Abs", 1}, {"Clip", 1}, {"If", 1}, {"Neg", 1}, {"com.microsoft.Pair", 1}};
  CHECK(model.operators == wanted);
  const auto is_own = [](const auto& set) { return set.first == "com.microsoft"; };
  CHECK(std::ranges::any_of(model.opsets, is_own));  // which only a branch has
  REQUIRE(model.nodes.size() == 1);
  CHECK(model.nodes[0].inputs == std::vector<std::string>{"c"});
  CHECK(bytes.find("then/half") != std::string::npos);
}

TEST_CASE("the same graph gives the same bytes, with names, axes and lines") {
  const ir::Graph graph = ir::parse_graph(kModel);
  const weights::WeightStore weights = store();
  const OnnxRequest request{
      .graph = graph, .weights = weights, .options = {.metadata = {{"a", "b"}}}};
  CHECK(onnx_bytes(request) == onnx_bytes(request));
  const ModelSummary model = read(onnx_bytes(request));
  CHECK(model.inputs[0].name == "i");
  CHECK(model.inputs[0].shape == std::vector<std::string>{"batch"});
  CHECK(model.outputs[0].shape == std::vector<std::string>{"batch", "300"});
  CHECK(model.nodes[0].source == "modeling_tiny.py:7");
  CHECK(model.nodes[0].name.starts_with("embed/Gather"));
  CHECK(model.metadata == std::vector<std::pair<std::string, std::string>>{{"a", "b"}});
}

TEST_CASE("weights go to files beside the model, in shards if asked") {
  const std::filesystem::path folder = fresh_folder();
  const ir::Graph graph = ir::parse_graph(kModel);
  const weights::WeightStore weights = store();
  write_onnx({.graph = graph, .weights = weights, .options = {}}, folder / "m.onnx");
  const ModelSummary model = read(bytes_of(folder / "m.onnx"));
  REQUIRE(find(model, "table") != nullptr);
  CHECK(find(model, "table")->file == "m.onnx_data");
  CHECK(find(model, "table")->offset % 64 == 0);
  CHECK(find(model, "copy")->file.empty());  // small ones stay inside

  write_onnx({.graph = graph, .weights = weights, .options = {.shard_bytes = 4800}},
             folder / "s.onnx");
  CHECK(std::filesystem::exists(folder / "s.onnx_data"));
  CHECK(std::filesystem::exists(folder / "s.onnx_data_1"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("weights in another type are converted as the graph has them, and losses are counted") {
  std::string text(kModel);
  for (std::size_t at = 0; (at = text.find("f32", at)) != std::string::npos;) {
    text.replace(at, 3, "f16");
  }
  const ir::Graph graph = ir::parse_graph(text);
  weights::WeightStore weights;
  const weights::WeightStore before = store();
  for (const weights::Weight& weight : before.weights()) {
    weights::Contents contents = weight.contents();
    weights.add_borrowed({.name = weight.name,
                          .dtype = weight.dtype,
                          .shape = weight.shape,
                          .read = [contents, name = weight.name] {
                            if (name != "w") return contents;
                            // One value that fits no f16, in the matrix that is stored transposed.
                            const auto changed = std::make_shared<std::vector<std::byte>>(
                                contents.bytes.begin(), contents.bytes.end());
                            const float large = 1e6F;
                            std::memcpy(changed->data(), &large, sizeof(large));
                            return weights::Contents{*changed, changed};
                          }});
  }
  const std::filesystem::path folder = fresh_folder();
  const OnnxWritten written =
      write_onnx({.graph = graph, .weights = weights, .options = {}}, folder / "m.onnx");
  const ModelSummary model = read(bytes_of(folder / "m.onnx"));
  CHECK(find(model, "table")->dtype == "f16");
  CHECK(find(model, "table")->bytes == 300 * 4 * 2);
  CHECK(find(model, "same") == nullptr);  // small ones are compared, too
  REQUIRE(written.losses.size() == 1);
  CHECK(written.losses[0].name == "w");
  CHECK(written.losses[0].counts.overflows == 1);
  const std::string data = bytes_of(folder / "m.onnx_data");
  const auto at = static_cast<std::size_t>(find(model, "w.transposed")->offset);
  std::array<std::uint16_t, 2> first{};
  std::memcpy(first.data(), data.data() + at, sizeof(first));
  CHECK(first == std::array<std::uint16_t, 2>{0x7c00, 0x6ce3});  // infinity, 5004
  std::filesystem::remove_all(folder);
}

TEST_CASE("a graph without its weights takes them as inputs") {
  const ir::Graph graph = ir::parse_graph(kModel);
  const weights::WeightStore weights = store();
  const ModelSummary model = read(onnx_bytes(
      {.graph = graph, .weights = weights, .options = {.weights = WeightLayout::left_out}}));
  const bool listed =
      std::ranges::any_of(model.inputs, [](const auto& x) { return x.name == "table"; });
  CHECK(listed);
  CHECK(find(model, "table") == nullptr);
}

TEST_CASE("a graph without its weights keeps the constants of the model's code") {
  std::string text(kModel);
  text.replace(text.find("@copy: f32[2]"), 13, "@copy: f32[2] constant");
  const ir::Graph graph = ir::parse_graph(text);
  const weights::WeightStore weights = store();
  const ModelSummary model = read(onnx_bytes(
      {.graph = graph, .weights = weights, .options = {.weights = WeightLayout::left_out}}));
  CHECK(find(model, "copy") != nullptr);
  CHECK(std::ranges::none_of(model.inputs, [](const auto& x) { return x.name == "copy"; }));
}

namespace {

/// `name` as a tensor of a file: so many numbers, all zero.
weights::Weight in_file(std::string name, weights::Shape shape, const std::filesystem::path& path) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  std::ofstream(path, std::ios::binary) << std::string(count * sizeof(float), '\0');
  const auto file = std::make_shared<const MappedFile>(MappedFile::open(path));
  return {.name = std::move(name), .shape = std::move(shape), .bytes = file->bytes(), .file = file};
}

}  // namespace

TEST_CASE("beside linked weights what is large gets a file of its own, under a name that is free") {
  const std::filesystem::path folder = fresh_folder();
  const ir::Graph graph = ir::parse_graph(
      "graph g(%i: i64[batch])\n  where batch in 1.. = 2\n"
      "  weights @linked: f32[512, 1024], @made: f32[512, 1024], @small: f32[512, 4]\n{\n"
      "  %1 = onnx.Gather(inputs=[@linked, %i], axis=0) : f32[batch, 1024]\n"
      "  %2 = onnx.Gather(inputs=[@made, %i], axis=0) : f32[batch, 1024]\n"
      "  %3 = onnx.Gather(inputs=[@small, %i], axis=0) : f32[batch, 4]\n"
      "  return x = %1, y = %2, z = %3\n}\n");
  weights::WeightStore weights;
  // As if it had a second name here.
  weights.add_borrowed(in_file("linked", {512, 1024}, folder / "m.onnx_data"));
  weights.add_owned("made", Dtype::f32, {512, 1024}, std::vector<std::byte>(512 * 1024 * 4));
  weights.add_owned("small", Dtype::f32, {512, 4}, std::vector<std::byte>(512 * 4 * 4));
  const OnnxRequest request{
      .graph = graph, .weights = weights, .options = {.weights = WeightLayout::linked}};
  for (int i = 0; i < 2; ++i) {  // the same the second time, over what is there
    const OnnxWritten written = write_onnx(request, folder / "m.onnx");
    const ModelSummary model = read(bytes_of(folder / "m.onnx"));
    CHECK(find(model, "linked")->file == "m.onnx_data");
    CHECK(find(model, "made")->file == "m.onnx_data_1");
    CHECK(find(model, "small")->file.empty());
    CHECK(written.files ==
          std::vector<std::filesystem::path>{folder / "m.onnx", folder / "m.onnx_data_1"});
    CHECK(std::filesystem::file_size(folder / "m.onnx_data_1") == 512 * 1024 * 4);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a weight that is nowhere is an error with ways out") {
  const ir::Graph graph = ir::parse_graph(kModel);
  const weights::WeightStore none;
  CHECK_THROWS_WITH_AS(onnx_bytes({.graph = graph, .weights = none, .options = {}}),
                       doctest::Contains("export_params=False"), ExportError);
}

TEST_CASE("two outputs of one name are an error") {
  std::string text(kModel);
  text.replace(text.find("z = %6"), 6, "i = %6");
  const ir::Graph graph = ir::parse_graph(text);
  const weights::WeightStore weights = store();
  CHECK_THROWS_WITH_AS(onnx_bytes({.graph = graph, .weights = weights, .options = {}}),
                       doctest::Contains("two inputs, outputs or weights are called i"),
                       ExportError);
}

TEST_CASE("weights that are joined are one tensor of the file, one after the other") {
  const ir::Graph graph = ir::parse_graph(
      "graph g(%i: i64[batch])\n  where batch in 1.. = 2\n"
      "  weights @a.copy.bias: f32[2], @a.next.bias: f32[2]\n{\n"
      "  %1 = modelport.joined(inputs=[@a.copy.bias, @a.next.bias]) : f32[4]\n"
      "  %2 = onnx.Gather(inputs=[%1, %i], axis=0) : f32[batch]\n  return y = %2\n}\n");
  weights::WeightStore weights;
  const auto add = [&](std::string name, const std::vector<float>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    weights.add_owned(std::move(name), Dtype::f32, weights::Shape{2},
                      std::vector<std::byte>(bytes.begin(), bytes.end()));
  };
  add("a.copy.bias", {1, 2});
  add("a.next.bias", {3, 4});
  const std::string bytes = onnx_bytes({.graph = graph, .weights = weights, .options = {}});
  const ModelSummary model = read(bytes);
  REQUIRE(model.weights.size() == 1);
  CHECK(model.weights[0].name == "a.copy+next.bias");
  CHECK(model.operators.size() == 1);
  const std::vector<float> joined{1, 2, 3, 4};
  CHECK(bytes.find(std::string(reinterpret_cast<const char*>(joined.data()), 16)) !=
        std::string::npos);
}

}  // namespace modelport::onnx
