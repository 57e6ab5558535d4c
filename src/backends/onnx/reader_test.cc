#include "backends/onnx/reader.h"

#include <doctest/doctest.h>

#include <protozero/pbf_writer.hpp>

#include "base/error.h"

namespace modelport::onnx {
namespace {

using protozero::pbf_writer;

std::span<const std::byte> bytes(const std::string& data) { return std::as_bytes(std::span(data)); }

std::string node(const std::string& op, const std::string& domain = "",
                 const std::string& inner = "") {
  std::string data;
  pbf_writer writer(data);
  writer.add_string(1, "x");
  writer.add_string(1, "");
  writer.add_string(2, "y");
  writer.add_string(3, "layer/" + op);
  writer.add_string(4, op);
  if (!domain.empty()) writer.add_string(7, domain);
  if (op == "Transpose") {
    const auto add = [&](const std::string& name, auto fill) {
      pbf_writer attribute(writer, 5);
      attribute.add_string(1, name);
      fill(attribute);
    };
    const std::vector<std::int64_t> packed(20, 7);
    add("axis", [](pbf_writer& one) { one.add_int64(3, -1); });
    add("perm", [&](pbf_writer& one) { one.add_packed_int64(8, packed.begin(), packed.end()); });
    add("scales", [](pbf_writer& one) { one.add_float(7, 0.5F), one.add_float(7, 2.0F); });
    add("mode", [](pbf_writer& one) { one.add_string(4, std::string(100, 'x')); });
  }
  if (!inner.empty()) {
    pbf_writer attribute(writer, 5);
    attribute.add_string(1, "body");
    attribute.add_message(6, inner);
  }
  pbf_writer entry(writer, 9);
  entry.add_string(1, "source");
  entry.add_string(2, "modeling_x.py:7");
  return data;
}

std::string value(const std::string& name) {
  std::string data;
  pbf_writer writer(data);
  writer.add_string(1, name);
  pbf_writer type(writer, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, 1);
  pbf_writer shape(tensor, 2);
  pbf_writer(shape, 1).add_string(2, "batch");
  pbf_writer(shape, 1).add_int64(1, 8);
  pbf_writer(shape, 1).add_string(3, "only a denotation");
  return data;
}

std::string weight(const std::string& name, const std::vector<std::int64_t>& shape,
                   const std::string& offset = "") {
  std::string data;
  pbf_writer writer(data);
  writer.add_packed_int64(1, shape.begin(), shape.end());
  writer.add_int32(2, 16);
  writer.add_string(8, name);
  if (offset == "inside") writer.add_bytes(9, "\1\2\3\4\5\6\7\10");
  if (offset.empty() || offset == "inside") return data;
  for (const auto& [key, text] :
       {std::pair{"location", "weights.bin"}, {"offset", offset.c_str()}}) {
    pbf_writer entry(writer, 13);
    entry.add_string(1, key);
    entry.add_string(2, text);
  }
  return data;
}

std::string model(const std::string& graph) {
  std::string data;
  pbf_writer writer(data);
  writer.add_int64(1, 10);
  writer.add_string(2, "someone");
  {
    pbf_writer opset(writer, 8);
    opset.add_string(1, "ai.onnx");
    opset.add_int64(2, 20);
  }
  {
    pbf_writer entry(writer, 14);
    entry.add_string(1, "key");
    entry.add_string(2, "text");
  }
  writer.add_message(7, graph);
  return data;
}

std::string graph(const std::vector<std::pair<int, std::string>>& fields) {
  std::string data;
  pbf_writer writer(data);
  for (const auto& [field, message] : fields)
    writer.add_message(static_cast<protozero::pbf_tag_type>(field), message);
  return data;
}

std::string message_of(const std::string& data) {
  try {
    summarize(bytes(data), "file.onnx");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics()[0].code == Code::bad_file);
    CHECK(!error.diagnostics()[0].ways_out.empty());
    return error.diagnostics()[0].what;
  }
  return "";
}

TEST_CASE("a model is summarized") {
  const std::string inner = graph({{1, node("Add")}, {5, weight("inside", {4})}});
  const std::string main = graph({{1, node("If", "", inner)},
                                  {1, node("Gelu", "com.microsoft")},
                                  {1, node("Add")},
                                  {5, weight("w", {3, 5}, "64")},
                                  {11, value("x")},
                                  {11, value("w")},
                                  {12, value("y")}});
  const ModelSummary summary = summarize(bytes(model(main)), "file.onnx");
  CHECK(summary.ir_version == 10);
  CHECK(summary.producer_name == "someone");
  CHECK(summary.opsets == std::vector<std::pair<std::string, std::int64_t>>{{"", 20}});
  CHECK(summary.metadata[0].second == "text");
  REQUIRE(summary.inputs.size() == 1);  // w is an initializer
  CHECK(summary.inputs[0].dtype == "f32");
  CHECK(summary.inputs[0].shape == std::vector<std::string>{"batch", "8", "?"});
  CHECK(summary.outputs.size() == 1);
  CHECK(summary.operators ==
        std::map<std::string, std::size_t>{{"Add", 2}, {"If", 1}, {"com.microsoft.Gelu", 1}});
  REQUIRE(summary.nodes.size() == 3);
  CHECK(summary.nodes[1].op == "com.microsoft.Gelu");
  CHECK(summary.nodes[0].source == "modeling_x.py:7");
  CHECK(summary.nodes[0].inputs == std::vector<std::string>{"x", ""});
  REQUIRE(summary.weights.size() == 2);
  CHECK(summary.weights[1].bytes == 30);
  CHECK(summary.weights[1].file == "weights.bin");
  CHECK(summary.weights[1].offset == 64);
}

TEST_CASE("a weight in the file says where, unless it has another size than its shape") {
  const std::string file = model(graph({{1, node("Add")},
                                        {5, weight("as bytes", {4}, "inside")},
                                        {5, weight("cut off", {5}, "inside")},
                                        {5, weight("otherwise", {4})}}));
  const ModelSummary summary = summarize(bytes(file), "file.onnx");
  REQUIRE(summary.weights.size() == 3);
  CHECK(file.substr(summary.weights[0].offset, 8) == "\1\2\3\4\5\6\7\10");
  CHECK(summary.weights[1].offset == 0);
  CHECK(summary.weights[2].offset == 0);
}

TEST_CASE("attributes are read as text, and long ones are cut") {
  const std::string main =
      graph({{1, node("Transpose")}, {1, node("If", "", graph({{1, node("Add")}}))}});
  const ModelSummary summary = summarize(bytes(model(main)), "file.onnx");
  std::string sevens = "7";
  for (int i = 1; i < 16; ++i) sevens += ", 7";
  CHECK(summary.nodes[0].attributes == "axis=-1, perm=[" + sevens +
                                           ", …], scales=[0.5, 2], mode=\"" + std::string(80, 'x') +
                                           "…\"");
  CHECK(summary.nodes[1].attributes == "body=graph");
}

TEST_CASE("bytes that are no model are refused with a reason") {
  CHECK(message_of("").find("no graph") != std::string::npos);
  CHECK(message_of("\x08\x0a").find("no graph") != std::string::npos);
  CHECK(!message_of("<!DOCTYPE html>").empty());
  const std::string whole = model(graph({{1, node("Add")}, {11, value("x")}}));
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size)
    refused += message_of(whole.substr(0, size)).empty() ? 0 : 1;
  CHECK(refused == whole.size());
}

TEST_CASE("impossible weights are refused") {
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK(message_of(model(graph({{5, weight("w", {large, large})}}))).find("shape") !=
        std::string::npos);
  CHECK(message_of(model(graph({{5, weight("w", {-1})}}))).find("shape") != std::string::npos);
  for (const std::string offset :
       {"12x", "-1", " ", "18446744073709551616", "99999999999999999999"}) {
    CHECK_MESSAGE(message_of(model(graph({{5, weight("w", {1}, offset)}}))).find("place") !=
                      std::string::npos,
                  offset);
  }
  CHECK(message_of(model(graph({{5, weight("w", {8}, "18446744073709551600")}}))).find("beyond") !=
        std::string::npos);
}

TEST_CASE("every file that a tensor names is listed, wherever the tensor is") {
  std::string constant = node("Constant");
  {
    pbf_writer writer(constant);
    pbf_writer attribute(writer, 5);
    attribute.add_message(5, weight("in an attribute", {2}, "0"));
  }
  std::string sparse;
  {
    pbf_writer writer(sparse);
    writer.add_message(2, weight("indices", {2}, "0"));
  }
  for (const std::string& main :
       {graph({{1, constant}}), graph({{15, sparse}}),
        graph({{1, node("If", "", graph({{15, sparse}}))}}), graph({{5, weight("w", {2}, "0")}})}) {
    const ModelSummary summary = summarize(bytes(model(main)), "file.onnx");
    CHECK(summary.data_files == std::set<std::string>{"weights.bin"});
  }
}

TEST_CASE("graphs nested without end are refused") {
  std::string inner = graph({{1, node("Add")}});
  for (int i = 0; i < 200; ++i) inner = graph({{1, node("If", "", inner)}});
  CHECK(message_of(model(inner)).find("nested") != std::string::npos);
}

TEST_CASE("further outputs are appended to a file") {
  const std::string whole = model(graph({{1, node("Add")}, {12, value("y")}}));
  const std::vector<std::string> names{"a", "b"};
  const ModelSummary summary = summarize(bytes(whole + further_outputs(names)), "file.onnx");
  REQUIRE(summary.outputs.size() == 3);
  CHECK(summary.outputs[2].name == "b");
  CHECK(!summary.outputs[2].has_shape);
  CHECK(summary.nodes.size() == 1);
}

TEST_CASE(
    "what a call may set is appended to the inputs of a file, and is none where it has a value") {
  const std::string whole = model(graph({{1, node("Add")}}));
  const ModelSummary without = summarize(bytes(whole + settable_flag("flag")), "file.onnx");
  REQUIRE(without.inputs.size() == 1);
  CHECK(without.inputs[0].name == "flag");
  CHECK(without.inputs[0].has_shape);
  const std::string set = model(graph({{1, node("Add")}, {5, weight("flag", {}, "0")}}));
  const ModelSummary with = summarize(bytes(set + settable_flag("flag")), "file.onnx");
  CHECK(with.inputs.empty());
  CHECK(with.weights.size() == 1);
}

}  // namespace
}  // namespace modelport::onnx
