#include "weights/store.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "weights/stream.h"

namespace modelport::weights {
namespace {

std::vector<std::byte> bytes_of(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

TEST_CASE("a store holds mapped, borrowed and owned weights in the order of their addition") {
  const Checkpoint checkpoint = Checkpoint::open("tests/corpus/safetensors/all_dtypes.safetensors");
  const auto outside = std::make_shared<const std::array<float, 2>>(std::array{1.0f, 2.0f});
  const std::weak_ptr<const std::array<float, 2>> watch = outside;
  WeightStore store;
  store.add_owned("z", Dtype::f32, {1}, bytes_of(std::array{3.0f}));
  store.add_borrowed({.name = "b",
                      .dtype = Dtype::f32,
                      .shape = {2, 1},
                      .bytes = std::as_bytes(std::span(*outside)),
                      .file = nullptr,
                      .file_offset = 0,
                      .keep_alive = outside});
  store.add_mapped("renamed", checkpoint.at("single"));
  std::vector<std::string> names;
  for (const Weight& weight : store.weights()) names.push_back(weight.name);
  CHECK(names == std::vector<std::string>{"z", "b", "renamed"});
  CHECK(watch.use_count() == 2);
  CHECK(store.at("b").shape == Shape{2, 1});
  const Weight& mapped = store.at("renamed");
  CHECK(mapped.dtype == Dtype::f32);
  CHECK(mapped.bytes.data() == mapped.file->bytes().data() + mapped.file_offset);
  CHECK(mapped.file->path() == checkpoint.path());
  CHECK(store.at("z").file == nullptr);
  store = WeightStore();
  CHECK(watch.use_count() == 1);
}

TEST_CASE("references into a store survive further additions and a move of the store") {
  WeightStore store;
  const Weight& first = store.add_owned("w0", Dtype::f32, {1}, bytes_of(std::array{1.0f}));
  for (int i = 1; i < 1000; ++i) {
    store.add_owned("w" + std::to_string(i), Dtype::f32, {1}, bytes_of(std::array{1.0f}));
  }
  const WeightStore moved = std::move(store);
  CHECK(moved.find("w0") == &first);
  CHECK(first.name == "w0");
}

TEST_CASE("a tied name finds the weight itself and is not streamed again") {
  WeightStore store;
  const Weight& embed = store.add_owned("embed", Dtype::f32, {1}, bytes_of(std::array{1.0f}));
  store.add_alias("head", "embed");
  CHECK(&store.add_alias("second head", "head") == &embed);
  CHECK(store.find("head") == &embed);
  CHECK(store.weights().size() == 1);
  CHECK(store.aliases() == std::vector<std::pair<std::string, std::string>>{
                               {"head", "embed"}, {"second head", "embed"}});
  CHECK(tensor_sources(store).size() == 1);
}

TEST_CASE("a name used twice, an alias of nothing and bytes that do not fit are errors of ours") {
  WeightStore store;
  store.add_owned("a", Dtype::f32, {1}, bytes_of(std::array{1.0f}));
  CHECK_THROWS_AS(store.add_owned("a", Dtype::f32, {1}, bytes_of(std::array{1.0f})), InternalError);
  CHECK_THROWS_AS(store.add_alias("a", "a"), InternalError);
  CHECK_THROWS_AS(store.add_alias("b", "none"), InternalError);
  CHECK_THROWS_AS(store.add_owned("c", Dtype::f32, {2}, bytes_of(std::array{1.0f})), InternalError);
  CHECK_THROWS_AS(store.add_owned("d", Dtype::f32, {-1}, {}), InternalError);
  CHECK(store.weights().size() == 1);
  CHECK(store.find("c") == nullptr);
}

TEST_CASE("a weight that no source gave is an error for the user") {
  const WeightStore store;
  CHECK(store.find("lm_head.weight") == nullptr);
  try {
    (void)store.at("lm_head.weight");
    FAIL("no error");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics().at(0).code == Code::missing_weight);
  }
}

TEST_CASE("floating-point weights are converted on the way out and losses are counted by name") {
  WeightStore store;
  store.add_owned("big", Dtype::f32, {3}, bytes_of(std::array{1.0f, 1e9f, 1e-9f}));
  store.add_owned("fine", Dtype::f32, {1}, bytes_of(std::array{0.5f}));
  store.add_owned("ids", Dtype::i32, {1}, bytes_of(std::array{1.0f}));
  std::vector<ConversionLoss> losses;
  MemorySink sink;
  write_safetensors(tensor_sources(store, {.floats = Dtype::f16, .losses = &losses}), {}, sink);
  const SafetensorsHeader header = parse_safetensors(sink.bytes(), "memory");
  REQUIRE(header.tensors.size() == 3);
  CHECK(header.tensors[0].dtype == Dtype::i32);
  CHECK(header.tensors[1].name == "big");
  CHECK(header.tensors[1].dtype == Dtype::f16);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].name == "big");
  CHECK(losses[0].from == Dtype::f32);
  CHECK(losses[0].to == Dtype::f16);
  CHECK(losses[0].counts == ConversionCounts{.overflows = 1, .underflows = 1});
  CHECK_THROWS_AS(tensor_sources(store, {.floats = Dtype::i8}), ExportError);
}

TEST_CASE("a weight that is made when it is asked for is held only while it is streamed") {
  WeightStore store;
  std::weak_ptr<const std::vector<std::byte>> made;
  int times = 0;
  store.add_borrowed({.name = "later", .dtype = Dtype::f32, .shape = {2}, .read = [&] {
                        ++times;
                        const auto bytes = std::make_shared<const std::vector<std::byte>>(
                            bytes_of(std::array{1.0f, 1e9f}));
                        made = bytes;
                        return Contents{*bytes, bytes};
                      }});
  CHECK(times == 0);
  CHECK(store.at("later").byte_count() == 8);
  MemorySink sink;
  CHECK(stream(store.at("later"), Dtype::f16, sink) == ConversionCounts{.overflows = 1});
  CHECK(sink.bytes().size() == 4);
  CHECK(times == 1);
  CHECK(made.expired());
}

TEST_CASE("a weight that is made with another length than it should have is an error of ours") {
  WeightStore store;
  store.add_borrowed(
      {.name = "short", .dtype = Dtype::f32, .shape = {2}, .read = [] { return Contents{}; }});
  MemorySink sink;
  CHECK_THROWS_AS(stream(store.at("short"), Dtype::f32, sink), InternalError);
}

/// Most memory mapped from files that was seen while a tensor passed through.
class WatchingSink final : public Sink {
 public:
  long most_kib = 0;

 protected:
  void append(std::span<const std::byte> bytes) override {
    unsigned sum = 0;  // touches every page
    for (std::size_t i = 0; i < bytes.size(); i += 4096) sum += static_cast<unsigned>(bytes[i]);
    CHECK(sum == 0);
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("RssFile:")) most_kib = std::max(most_kib, std::stol(line.substr(8)));
    }
  }
};

TEST_CASE("streaming a mapped weight keeps memory flat") {
  const ScratchFolder folder;
  std::string header = R"({"big":{"dtype":"F32","shape":[33554432],"data_offsets":[0,134217728]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string start(8, '\0');
  start[0] = static_cast<char>(header.size());
  const auto path = folder.write("model.safetensors", start + header);
  REQUIRE(::truncate(path.c_str(), static_cast<off_t>(8 + header.size() + 134'217'728)) == 0);
  const Checkpoint checkpoint = Checkpoint::open(path);
  WeightStore store;
  store.add_mapped("big", checkpoint.at("big"));
  WatchingSink nothing;
  nothing.write(std::array<std::byte, 1>{});
  if (nothing.most_kib == 0) return;  // the system does not say
  WatchingSink sink;
  stream(store.at("big"), Dtype::f32, sink);
  CHECK(sink.written() == 134'217'728);
  CHECK(sink.most_kib - nothing.most_kib < 32 * 1024);
}

}  // namespace
}  // namespace modelport::weights
