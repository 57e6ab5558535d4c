#include "weights/safetensors_writer.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/json.h"
#include "base/scratch_folder.h"
#include "weights/checkpoint.h"
#include "weights/store.h"
#include "weights/stream.h"

namespace modelport::weights {
namespace {

namespace fs = std::filesystem;

TensorSource source(std::string name, Dtype dtype, Shape shape, char fill) {
  const auto bytes = dense_bytes(dtype, shape).value_or(0);
  return {std::move(name), dtype, std::move(shape),
          [bytes, fill](Sink& sink) { sink.write(std::string(bytes, fill)); }};
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const MemorySink& sink) {
  return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE("a written file is the header, padded to 8 bytes, and the tensors, wide types first") {
  MemorySink sink;
  const std::vector tensors{source("b", Dtype::u8, {3}, 'b'), source("c", Dtype::f32, {1}, 'c'),
                            source("a", Dtype::u8, {1}, 'a')};
  write_safetensors(tensors, {{"format", "pt"}}, sink);
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"c":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},)"
      R"("b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})";
  const std::string text = text_of(sink);
  const std::size_t padded = static_cast<unsigned char>(text[0]);
  CHECK(padded % 8 == 0);
  CHECK(text.substr(8, header.size()) == header);
  CHECK(text.substr(8 + padded) == "ccccabbb");
}

TEST_CASE("what is written reads back, also without tensors or metadata") {
  for (const std::size_t count : {0, 1, 5}) {
    std::vector<TensorSource> tensors;
    for (std::size_t i = 0; i < count; ++i) {
      tensors.push_back(source("t\"\n" + std::to_string(i), kDtypes[i].dtype,
                               {static_cast<std::int64_t>(i), 2}, 'x'));
    }
    MemorySink sink;
    write_safetensors(tensors, {}, sink);
    const SafetensorsHeader header = parse_safetensors(sink.bytes(), "memory");
    CHECK(header.data_begin % 8 == 0);
    CHECK(header.metadata.empty());
    CHECK(header.tensors.size() == count);
  }
}

TEST_CASE("the bytes are those that the safetensors library writes") {
  const fs::path path = "tests/corpus/safetensors/all_dtypes.safetensors";
  const Checkpoint checkpoint = Checkpoint::open(path);
  WeightStore store;
  const auto& tensors = checkpoint.tensors();
  for (std::size_t i = tensors.size(); i-- > 0;) {  // order must not matter
    store.add_mapped(tensors[i].entry.name, tensors[i]);
  }
  MemorySink sink;
  write_safetensors(tensor_sources(store), {{"format", "pt"}}, sink);
  CHECK(text_of(sink) == read(path));
}

TEST_CASE("a store that fits is saved as one file, a larger one as shards with an index") {
  const ScratchFolder folder;
  const std::vector tensors{source("a", Dtype::f32, {4}, 'a'), source("b", Dtype::f32, {1}, 'b'),
                            source("large", Dtype::f32, {9}, 'l'),
                            source("c", Dtype::i8, {20}, 'c')};
  using Names = std::vector<std::string>;
  CHECK(save_safetensors(tensors, folder.path / "one") == Names{"model.safetensors"});
  CHECK(save_safetensors(tensors, folder.path / "fits", {.max_shard_bytes = 76}) ==
        Names{"model.safetensors"});
  CHECK(save_safetensors(tensors, folder.path / "many", {.max_shard_bytes = 20}) ==
        Names{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
              "model-00003-of-00003.safetensors", "model.safetensors.index.json"});
  const Json index =
      parse_json(read(folder.path / "many" / "model.safetensors.index.json"), {.name = "index"});
  CHECK(index["metadata"]["total_size"] == 76);
  CHECK(index["weight_map"] == Json{{"a", "model-00001-of-00003.safetensors"},
                                    {"b", "model-00001-of-00003.safetensors"},
                                    {"large", "model-00002-of-00003.safetensors"},
                                    {"c", "model-00003-of-00003.safetensors"}});
  const Checkpoint one = Checkpoint::open(folder.path / "one");
  const Checkpoint many = Checkpoint::open(folder.path / "many");
  REQUIRE(many.tensors().size() == 4);
  for (const TensorSource& tensor : tensors) {
    CHECK(std::ranges::equal(one.data(tensor.name), many.data(tensor.name)));
    CHECK(many.at(tensor.name).entry.shape == tensor.shape);
  }
}

TEST_CASE("saving twice gives the same bytes and leaves no other files") {
  const ScratchFolder folder;
  const std::vector tensors{source("a", Dtype::f32, {4}, 'a'), source("b", Dtype::f32, {4}, 'b')};
  const SafetensorsOptions options{.max_shard_bytes = 16};
  const auto names = save_safetensors(tensors, folder.path / "x", options);
  save_safetensors(tensors, folder.path / "y", options);
  for (const std::string& name : names) {
    CHECK(read(folder.path / "x" / name) == read(folder.path / "y" / name));
  }
  CHECK(names_in(folder.path / "x") == names);
}

TEST_CASE("a save of the other kind replaces what was there") {
  const ScratchFolder folder;
  const std::vector old_tensors{source("a", Dtype::i8, {2}, 'o'), source("b", Dtype::i8, {2}, 'o')};
  const std::vector new_tensors{source("a", Dtype::i8, {2}, 'n'), source("b", Dtype::i8, {2}, 'n')};
  const SafetensorsOptions shards{.max_shard_bytes = 2};
  const auto first_byte = [&] {
    return static_cast<char>(Checkpoint::open(folder.path).data("b").front());
  };
  save_safetensors(old_tensors, folder.path);
  save_safetensors(new_tensors, folder.path, shards);
  CHECK(first_byte() == 'n');
  save_safetensors(old_tensors, folder.path);
  CHECK(first_byte() == 'o');
  CHECK(!fs::exists(folder.path / "model.safetensors.index.json"));
}

TEST_CASE("a save that fails leaves the old files and no partial ones") {
  const ScratchFolder folder;
  save_safetensors(std::vector{source("a", Dtype::i8, {2}, 'o')}, folder.path);
  const std::string before = read(folder.path / "model.safetensors");
  std::vector tensors{source("a", Dtype::i8, {2}, 'n'), source("b", Dtype::i8, {2}, 'n')};
  tensors[1].stream = [](Sink&) { throw std::runtime_error("the disk is full"); };
  CHECK_THROWS_AS(save_safetensors(tensors, folder.path), std::runtime_error);
  CHECK_THROWS_AS(save_safetensors(tensors, folder.path, {.max_shard_bytes = 2}),
                  std::runtime_error);
  CHECK(names_in(folder.path) == std::vector<std::string>{"model.safetensors"});
  CHECK(read(folder.path / "model.safetensors") == before);
}

TEST_CASE("a tensor that streams another number of bytes than it should is an error of ours") {
  std::vector tensors{source("a", Dtype::i8, {2}, 'n')};
  tensors[0].stream = [](Sink& sink) { sink.write("three"); };
  MemorySink sink;
  CHECK_THROWS_AS(write_safetensors(tensors, {}, sink), InternalError);
}

TEST_CASE("tensors that the format cannot hold are refused together") {
  const std::vector tensors{
      source("twice", Dtype::f32, {1}, 'x'),        source("twice", Dtype::f32, {1}, 'x'),
      source("__metadata__", Dtype::f32, {1}, 'x'), source("\xff", Dtype::f32, {1}, 'x'),
      source("complex", Dtype::c128, {1}, 'x'),     source("negative", Dtype::f32, {-1}, 'x')};
  MemorySink sink;
  try {
    write_safetensors(tensors, {{"k", "\xff"}}, sink);
    FAIL("no error");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics().size() == 6);
    for (const Diagnostic& d : error.diagnostics()) CHECK(d.ways_out.size() == 1);
  }
  CHECK(sink.written() == 0);
}

TEST_CASE("a folder that cannot be made or written is an error that names it") {
  const ScratchFolder folder;
  const fs::path file = folder.write("file", "x");
  const std::vector tensors{source("a", Dtype::i8, {2}, 'n')};
  CHECK_THROWS_AS(save_safetensors(tensors, file / "below"), ExportError);
  CHECK_THROWS_AS(AtomicFile(folder.path / "none" / "file"), ExportError);
  fs::create_directories(folder.path / "taken" / "model.safetensors");
  CHECK_THROWS_AS(save_safetensors(tensors, folder.path / "taken"), ExportError);
  CHECK(names_in(folder.path / "taken") == std::vector<std::string>{"model.safetensors"});
}

TEST_CASE("a write that the system refuses halfway is an error and leaves nothing") {
  const ScratchFolder folder;
  // A limit on file size stands in for a full disk: write() fails in the same place.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    save_safetensors(std::vector{source("a", Dtype::i8, {200'000}, 'x')}, folder.path);
  } catch (const ExportError& error) {
    message = error.diagnostics()[0].what;
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, old_handler);
  CHECK(message ==
        "cannot write " + (folder.path / "model.safetensors").string() + ": File too large");
  CHECK(names_in(folder.path).empty());
}

}  // namespace
}  // namespace modelport::weights
