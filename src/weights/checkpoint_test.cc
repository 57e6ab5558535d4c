#include "weights/checkpoint.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/scratch_folder.h"
#include "weights/safetensors_writer.h"

namespace modelport::weights {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

std::string file_with(const std::vector<std::string>& names) {
  std::vector<TensorSource> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, Dtype::i8, {2}, [name](Sink& sink) { sink.write("xy"); }});
  }
  MemorySink sink;
  write_safetensors(tensors, {}, sink);
  return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

std::vector<Diagnostic> problems_of(const fs::path& path) {
  try {
    (void)Checkpoint::open(path);
  } catch (const ExportError& error) {
    for (const Diagnostic& d : error.diagnostics()) {
      CHECK(d.code == Code::bad_file);
      CHECK(!d.ways_out.empty());
    }
    return error.diagnostics();
  }
  return {};
}

Texts errors_of(const fs::path& path) {
  Texts found;
  for (const Diagnostic& d : problems_of(path)) found.push_back(d.what);
  return found;
}

Texts names_of(const Checkpoint& checkpoint) {
  Texts names;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) names.push_back(tensor.entry.name);
  return names;
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST_CASE("a folder with one file opens, and so does the file itself") {
  const ScratchFolder folder;
  const fs::path file = folder.write("model.safetensors", file_with({"a", "b"}));
  for (const fs::path& path : {folder.path, file}) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    CHECK(names_of(checkpoint) == Texts{"a", "b"});
    const CheckpointTensor& b = checkpoint.at("b");
    CHECK(b.entry.dtype == Dtype::i8);
    CHECK(b.entry.shape == Shape{2});
    CHECK(b.file->path() == file);
    CHECK(static_cast<char>(checkpoint.data("b")[1]) == 'y');
    CHECK(checkpoint.find("c") == nullptr);
  }
}

TEST_CASE("a folder that transformers wrote as shards opens, also through its index file") {
  const fs::path folder = "tests/corpus/safetensors/sharded";
  const Checkpoint checkpoint = Checkpoint::open(folder);
  CHECK(checkpoint.tensors().size() == 13);
  CHECK(checkpoint.at("model.norm.weight").file->path().filename() ==
        "model-00002-of-00002.safetensors");
  CHECK(checkpoint.data("model.embed_tokens.weight").size() == 16 * 8 * 2);
  CHECK(names_of(Checkpoint::open(folder / kIndex)) == names_of(checkpoint));
}

TEST_CASE("the single file wins over an index, as it does in transformers") {
  const ScratchFolder folder;
  folder.write("model.safetensors", file_with({"a"}));
  folder.write(kIndex, R"({"weight_map":{"b":"none.safetensors"}})");
  CHECK(names_of(Checkpoint::open(folder.path)) == Texts{"a"});
}

TEST_CASE("a moved checkpoint and its tensors keep the bytes alive") {
  const ScratchFolder folder;
  folder.write("model.safetensors", file_with({"a"}));
  CheckpointTensor kept;
  {
    Checkpoint first = Checkpoint::open(folder.path);
    const Checkpoint second = std::move(first);
    kept = second.at("a");
  }
  CHECK(static_cast<char>(kept.data()[0]) == 'x');
}

TEST_CASE("all missing shards, broken shards and missing tensors are reported together") {
  const ScratchFolder folder;
  folder.write("1.safetensors", file_with({"a", "b"}));
  folder.write("2.safetensors", "junk");
  folder.write(kIndex, R"({"metadata":{},"weight_map":{"a":"1.safetensors","p":"1.safetensors",
      "q":"1.safetensors","c":"2.safetensors","d":"3.safetensors","e":"4.safetensors"}})");
  const std::string at = folder.path.string() + "/";
  const auto problems = problems_of(folder.path);
  REQUIRE(problems.size() == 4);
  CHECK(problems[0].what.starts_with(at + "2.safetensors: truncated: 4 bytes"));
  CHECK(problems[1].what ==
        at + "3.safetensors does not exist, and model.safetensors.index.json names it");
  CHECK(problems[2].what ==
        at + "4.safetensors does not exist, and model.safetensors.index.json names it");
  CHECK(problems[3].what ==
        at + "1.safetensors lacks tensors that model.safetensors.index.json says it holds");
  CHECK(problems[3].notes == Texts{"missing \"p\"", "missing \"q\""});
}

TEST_CASE("tensors that the index leaves out are found, and copies that it does not mean are not") {
  const ScratchFolder folder;
  folder.write("1.safetensors", file_with({"a", "extra", "both"}));
  folder.write("2.safetensors", file_with({"b", "both"}));
  folder.write(kIndex, R"({"weight_map":
      {"a":"1.safetensors","b":"2.safetensors","both":"./2.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  CHECK(names_of(checkpoint) == Texts{"a", "extra", "b", "both"});
  CHECK(checkpoint.at("both").file->path().filename() == "2.safetensors");
  folder.write(kIndex, R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  CHECK(errors_of(folder.path) ==
        Texts{(folder.path / kIndex).string() +
              ": tensor \"both\" is in two shards, and the index names neither"});
}

TEST_CASE("an index that is broken or leads out of its folder is refused") {
  const ScratchFolder folder;
  const std::string at = (folder.path / kIndex).string();
  const auto errors_with = [&](const char* index) {
    folder.write(kIndex, index);
    return errors_of(folder.path);
  };
  const std::string no_map =
      at + ": it has no object \"weight_map\" that says which file holds which tensor";
  CHECK(errors_with("").size() == 1);
  CHECK(errors_with("[]") == Texts{no_map});
  CHECK(errors_with("{}") == Texts{no_map});
  CHECK(errors_with(R"({"weight_map":[]})") == Texts{no_map});
  CHECK(errors_with(R"({"weight_map":{}})") == Texts{at + ": its \"weight_map\" names no tensor"});
  CHECK(errors_with(R"({"weight_map":{"a":1}})") ==
        Texts{at + ": tensor \"a\" is not mapped to a file name"});
  for (const std::string file : {"../x", "/etc/passwd", "", "sub/../../x", "x/", "a\\u0000b"}) {
    CAPTURE(file);
    const Texts found = errors_with(("{\"weight_map\":{\"a\":\"" + file + "\"}}").c_str());
    REQUIRE(found.size() == 1);
    CHECK(found[0].find("which is not a file in the same folder") != std::string::npos);
  }
}

TEST_CASE("a pickle checkpoint is refused with the command that converts it") {
  const ScratchFolder folder;
  folder.write("training_args.bin", "x");
  const fs::path file = folder.write("pytorch_model.bin", "PK");
  for (const fs::path& path : {folder.path, file}) {
    const auto problems = problems_of(path);
    REQUIRE(problems.size() == 1);
    CHECK(problems[0].what.find("a pickle checkpoint") != std::string::npos);
    CHECK(problems[0].ways_out[0].find("})' " + file.string() + " ") != std::string::npos);
  }
  folder.write("pytorch_model-00001-of-00002.bin", "PK");
  const auto problems = problems_of(folder.path);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].ways_out[0].find(" " + folder.path.string() + "-safetensors (or") !=
        std::string::npos);
}

TEST_CASE("a folder without a checkpoint says what it lacks and what it has") {
  const ScratchFolder folder;
  CHECK(errors_of(folder.path) ==
        Texts{folder.path.string() +
              ": no weights here (neither model.safetensors nor model.safetensors.index.json)"});
  folder.write("model.fp16.safetensors", file_with({"a"}));
  const auto problems = problems_of(folder.path);
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].notes == Texts{"found   model.fp16.safetensors"});
  CHECK(problems[0].ways_out[0] ==
        "name the file to use: " + (folder.path / "model.fp16.safetensors").string());
  CHECK(errors_of(folder.path / "none") ==
        Texts{"cannot open " + (folder.path / "none").string() + ": it does not exist"});
}

TEST_CASE("a tensor that is not there is an error with the names that come close") {
  const ScratchFolder folder;
  folder.write("model.safetensors",
               file_with({"layers.0.q_proj.weight", "layers.1.q_proj.weight", "other.weight"}));
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  try {
    (void)checkpoint.data("model.layers.1.q_proj.weight");
    FAIL("no error");
  } catch (const ExportError& error) {
    const Diagnostic& d = error.diagnostics().at(0);
    CHECK(d.code == Code::missing_weight);
    CHECK(d.notes ==
          Texts{"close    \"layers.1.q_proj.weight\"", "close    \"layers.0.q_proj.weight\""});
  }
}

/// Memory of this process that is mapped from files, in KiB; nothing where the system does not say.
std::optional<long> file_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::stol(line.substr(8));
  }
  return std::nullopt;
}

TEST_CASE("opening a checkpoint of many gigabytes reads none of its weights") {
  const ScratchFolder folder;
  constexpr std::uint64_t kBytes = std::uint64_t{16} << 30;
  std::string header =
      R"({"big":{"dtype":"I8","shape":[17179869184],"data_offsets":[0,17179869184]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string start(8, '\0');
  start[0] = static_cast<char>(header.size());
  const fs::path path = folder.write("model.safetensors", start + header);
  REQUIRE(::truncate(path.c_str(), static_cast<off_t>(8 + header.size() + kBytes)) == 0);
  const std::optional<long> before = file_memory();
  const Checkpoint checkpoint = Checkpoint::open(folder.path);
  CHECK(checkpoint.data("big").size() == kBytes);
  if (before) CHECK(*file_memory() - *before < 4096);
}

}  // namespace
}  // namespace modelport::weights
