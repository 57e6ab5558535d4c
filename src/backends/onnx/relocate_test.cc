#include "backends/onnx/relocate.h"

#include <doctest/doctest.h>

#include <protozero/pbf_writer.hpp>

#include "backends/onnx/reader.h"
#include "base/error.h"

namespace modelport::onnx {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string model_of(const std::vector<std::string>& files) {
  using protozero::pbf_writer;
  std::string data;
  pbf_writer model(data);
  model.add_int64(1, 8);
  model.add_string(2, "m.onnx_data");  // a name that is not a file's
  {
    pbf_writer graph(model, 7);
    for (const std::string& file : files) {
      pbf_writer tensor(graph, 5);
      tensor.add_int32(2, 1);
      tensor.add_string(8, file);
      for (const auto& [key, value] :
           {std::pair<std::string, std::string>{"location", file}, {"offset", "64"}}) {
        pbf_writer entry(tensor, 13);
        entry.add_string(1, key);
        entry.add_string(2, value);
      }
    }
  }
  model.add_fixed32(90, 7);
  model.add_fixed64(91, 7);
  return data;
}

}  // namespace

TEST_CASE("weights move to files of other names, and nothing else changes") {
  const std::string model = model_of({"m.onnx_data", "m.onnx_data_1", "kept"});
  const std::map<std::string, std::string> names = {{"m.onnx_data", "a longer name"},
                                                    {"m.onnx_data_1", "b"}};
  const std::string moved = relocate(bytes(model), names, "m.onnx");
  const ModelSummary summary = summarize(bytes(moved), "m.onnx");
  REQUIRE(summary.weights.size() == 3);
  CHECK(summary.weights[0].file == "a longer name");
  CHECK(summary.weights[0].offset == 64);
  CHECK(summary.weights[1].file == "b");
  CHECK(summary.weights[2].file == "kept");
  CHECK(summary.weights[0].name == "m.onnx_data");
  CHECK(summary.producer_name == "m.onnx_data");
  const std::map<std::string, std::string> back = {{"a longer name", "m.onnx_data"},
                                                   {"b", "m.onnx_data_1"}};
  CHECK(relocate(bytes(moved), back, "m.onnx") == model);
}

TEST_CASE("what is no model is refused") {
  CHECK_THROWS_AS(relocate(bytes("\x3a\xff\xff"), {}, "m.onnx"), ExportError);
}

}  // namespace modelport::onnx
