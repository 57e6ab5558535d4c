#include "driver/artifact_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <set>

#include "backends/onnx/reader.h"
#include "base/error.h"
#include "base/scratch_folder.h"
#include "driver/killed_process.h"
#include "driver/replace.h"

namespace modelport::driver {
namespace {

using Files = std::map<std::string, std::string>;

const std::vector<std::string> kParts = {"model", "decoder_model_merged", "encoder_model",
                                         "genai_config.json"};

std::string content(const Path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const Path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

Files tree(const Path& folder) {
  Files found;
  for (const Path& file : files_below(folder)) found[file.string()] = content(folder / file);
  return found;
}

/// What a folder has besides the list of files.
Files artifact(const Path& folder) {
  Files found = tree(folder);
  found.erase(kList);
  return found;
}

void export_to(const Path& out, const Files& files) {
  ArtifactFolder folder({.out = out, .parts = kParts});
  for (const auto& [name, text] : files) write(folder.folder() / name, text);
  folder.commit();
}

/// Names beside the place that are left over.
std::size_t left_over(const Path& parent) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(parent))
    count += is_unfinished_name(entry.path().filename().string()) ? 1 : 0;
  return count;
}

/// A model whose weights are in this file.
std::string model_with(const std::string& producer, const std::vector<std::string>& files) {
  using protozero::pbf_writer;
  std::string data;
  pbf_writer model(data);
  model.add_int64(1, 8);
  model.add_string(2, producer);
  pbf_writer graph(model, 7);
  graph.add_string(2, "g");
  for (const std::string& file : files) {
    pbf_writer tensor(graph, 5);
    tensor.add_int32(2, 1);
    tensor.add_string(8, "w-" + file);
    pbf_writer entry(tensor, 13);
    entry.add_string(1, "location");
    entry.add_string(2, file);
  }
  return data;
}

/// "old" or "new", as model and weights say; "mixed" if they do not agree.
std::string state_of_model(const Path& file) {
  const std::string bytes = content(file);
  const auto summary = onnx::summarize(std::as_bytes(std::span(bytes)), file.string());
  for (const auto& weight : summary.weights)
    if (content(file.parent_path() / weight.file) != summary.producer_name) return "mixed";
  return summary.producer_name;
}

void export_model(const Path& out, const std::string& tag, const std::vector<std::string>& data) {
  ArtifactFolder folder({.out = out, .is_file = true});
  write(folder.folder() / out.filename(), model_with(tag, data));
  for (const std::string& name : data) write(folder.folder() / name, tag);
  folder.commit();
}

}  // namespace

TEST_CASE("an export makes its folder, and a discarded one leaves no trace") {
  const ScratchFolder scratch;
  const Path out = scratch.path / "deep" / "out";
  {
    ArtifactFolder folder({.out = out, .parts = kParts});
    write(folder.folder() / "model.onnx", "half");
  }
  CHECK(std::filesystem::is_empty(scratch.path));
  export_to(out, {{"model.onnx", "new"}, {"onnx/model.onnx", "new"}});
  CHECK(artifact(out) == Files{{"model.onnx", "new"}, {"onnx/model.onnx", "new"}});
  CHECK(left_over(out.parent_path()) == 0);
}

TEST_CASE("old parts go, whoever wrote them, and what is not ours stays") {
  const ScratchFolder scratch;
  const Path out = scratch.path / "out";
  write(out / "decoder_model_merged.onnx", "old");  // of a version that left no list
  write(out / "onnx" / "encoder_model.onnx_data_1", "old");
  write(out / "genai_config.json", "old");
  write(out / "notes" / "deep" / "a.txt", "mine");
  write(out / "mine.onnx", "mine");
  std::filesystem::create_directories(out / "empty");
  std::filesystem::create_symlink("notes/deep/a.txt", out / "link");
  export_to(out, {{"model.onnx", "1"}, {"talker.onnx", "1"}, {"tokenizer.json", "1"}});
  const Files mine = {{"link", "mine"}, {"mine.onnx", "mine"}, {"notes/deep/a.txt", "mine"}};
  Files expected = mine;
  expected.insert({{"model.onnx", "1"}, {"talker.onnx", "1"}, {"tokenizer.json", "1"}});
  CHECK(artifact(out) == expected);
  CHECK_FALSE(is_there(out / "onnx"));
  CHECK(std::filesystem::is_directory(out / "empty"));
  export_to(out, {{"model.onnx", "2"}});
  expected = mine;
  expected["model.onnx"] = "2";
  CHECK(artifact(out) == expected);
  CHECK(std::filesystem::is_symlink(out / "link"));
}

TEST_CASE("a file that was there before any export is the user's, though it is written anew") {
  const ScratchFolder scratch;
  const Path out = scratch.path / "out";
  write(out / "tokenizer.json", "mine");
  export_to(out, {{"model.onnx", "1"}, {"tokenizer.json", "1"}});
  export_to(out, {{"model.onnx", "2"}});
  CHECK(artifact(out) == Files{{"model.onnx", "2"}, {"tokenizer.json", "1"}});
}

TEST_CASE("a list of files that leads out of the folder removes nothing there") {
  const ScratchFolder scratch;
  const Path out = scratch.path / "out";
  write(scratch.path / "precious", "mine");
  write(out / kList, R"({"files": ["../precious", "/etc/hostname", "a/../../precious", 7, ""]})");
  CHECK(read_list(out).empty());
  export_to(out, {{"model.onnx", "1"}});
  CHECK(content(scratch.path / "precious") == "mine");
  write(out / kList, "[[[");
  CHECK(read_list(out).empty());
}

TEST_CASE("a process that is killed at any step leaves the old folder or the new one") {
  const Files old = {
      {"model.onnx", "old"}, {"model.onnx_data", "old"}, {"encoder_model.onnx", "old"}};
  const Files fresh = {{"model.onnx", "new"}, {"model.onnx_data", "new"}, {"onnx/a.onnx", "new"}};
  std::set<std::string> seen;
  bool survived = false;
  for (int steps = 0; !survived; ++steps) {
    const ScratchFolder scratch;
    const Path out = scratch.path / "out";
    export_to(out, old);
    write(out / "notes" / "a.txt", "mine");
    survived = survives(steps, [&] { export_to(out, fresh); });
    Files found = artifact(out);
    CHECK(found.erase("notes/a.txt") == 1);
    CHECK((found == old || found == fresh));
    seen.insert(found == old ? "old" : "new");
    export_to(out, fresh);  // sweeps
    CHECK(left_over(scratch.path) == 0);
    CHECK(content(out / "notes" / "a.txt") == "mine");
  }
  CHECK(seen.size() == 2);
}

TEST_CASE("a process that is killed at any step leaves the old model or the new one") {
  std::set<std::string> seen;
  for (const auto& names : {std::vector<std::string>{"m.onnx_data"},
                            std::vector<std::string>{"m.onnx_data", "m.onnx_data_1"}}) {
    bool survived = false;
    for (int steps = 0; !survived; ++steps) {
      const ScratchFolder scratch;
      const Path out = scratch.path / "m.onnx";
      export_model(out, "old", {"m.onnx_data"});
      write(scratch.path / "m.onnx_data.txt", "mine");
      survived = survives(steps, [&] { export_model(out, "new", names); });
      const std::string state = state_of_model(out);
      CHECK((state == "old" || state == "new"));
      seen.insert(state);
      export_model(out, "last", {"m.onnx_data"});
      Files expected = {{"m.onnx", model_with("last", {"m.onnx_data"})},
                        {"m.onnx_data", "last"},
                        {"m.onnx_data.txt", "mine"}};
      CHECK(tree(scratch.path) == expected);
    }
  }
  CHECK(seen == std::set<std::string>{"old", "new"});
}

TEST_CASE(
    "a folder that cannot be swapped is the old one, the new one, or says that it is neither") {
  const Files old = {
      {"model.onnx", "old"}, {"config.json", "old"}, {"onnx/encoder_model.onnx", "old"}};
  const Files fresh = {{"decoder_model_merged.onnx", "new"}, {"config.json", "new"}};
  std::set<std::string> seen;
  bool survived = false;
  for (int steps = 0; !survived; ++steps) {
    const ScratchFolder scratch;
    const Path out = scratch.path / "out";
    export_to(out, old);
    write(out / "notes.txt", "mine");
    const Path staged = scratch.path / ".out.00000000.partial";
    for (const auto& [name, text] : fresh) write(staged / name, text);
    write_list(staged, {"config.json", "decoder_model_merged.onnx"});
    survived = survives(steps, [&] { replace_files(staged, out, EarlierExport(out, kParts)); });
    Files found = artifact(out);
    CHECK(found.erase("notes.txt") == 1);
    const bool whole = found == old || found == fresh;
    CHECK((whole || is_half_replaced_at(out)));
    seen.insert(found == old ? "old" : found == fresh ? "new" : "neither");
    {
      const ArtifactFolder next({.out = out, .parts = kParts});
    }  // takes it back
    found = artifact(out);
    CHECK(found.erase("notes.txt") == 1);
    CHECK((found == old || found == fresh));
    CHECK_FALSE(is_half_replaced_at(out));
    CHECK(left_over(scratch.path) == 0);
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("exports into one folder do not disturb each other, and the last one stays") {
  const ScratchFolder scratch;
  const Path out = scratch.path / "out";
  ArtifactFolder one({.out = out, .parts = kParts});
  ArtifactFolder two({.out = out, .parts = kParts});
  write(one.folder() / "model.onnx", "1");
  write(two.folder() / "decoder_model_merged.onnx", "2");
  one.commit();
  CHECK(artifact(out) == Files{{"model.onnx", "1"}});
  two.commit();
  CHECK(artifact(out) == Files{{"decoder_model_merged.onnx", "2"}});
  CHECK(left_over(scratch.path) == 0);
}

TEST_CASE("a model that is being written into a folder survives that the folder is replaced") {
  const ScratchFolder scratch;
  const Path out = scratch.path / "out";
  export_to(out, {{"model.onnx", "old"}, {"encoder_model.onnx", "old"}});
  ArtifactFolder single({.out = out / "b.onnx", .is_file = true});
  write(single.folder() / "b.onnx", "b");
  export_to(out, {{"model.onnx", "new"}});
  single.commit();
  CHECK(artifact(out) == Files{{"b.onnx", "b"}, {"model.onnx", "new"}});
}

TEST_CASE("a folder that nothing can be written to is refused with a way out") {
  if (::geteuid() == 0) return;  // root may write anywhere
  const ScratchFolder scratch;
  ::chmod(scratch.path.c_str(), 0500);
  CHECK_THROWS_AS(ArtifactFolder({.out = scratch.path / "out"}), ExportError);
}

TEST_CASE("names of weights and of unfinished folders are told from others") {
  for (const char* name :
       {"m.onnx_data", "m.onnx_data_1", "m.onnx_data-0a1b2c3d", "m.onnx_data_12-0a1b2c3d"})
    CHECK(is_data_of(name, "m.onnx"));
  for (const char* name : {"m.onnx", "m.onnx_data.txt", "m.onnx_database", "m.onnx_data_",
                           "m.onnx_data-x", "m.onnx_data_1x", "n.onnx_data"})
    CHECK_FALSE(is_data_of(name, "m.onnx"));
  CHECK(is_unfinished_name(".out.0a1b2c3d.partial"));
  for (const char* name :
       {".out.partial", "out.0a1b2c3d.partial", ".0a1b2c3d.partial", ".out.0A1b2c3d.partial"})
    CHECK_FALSE(is_unfinished_name(name));
}

}  // namespace modelport::driver
