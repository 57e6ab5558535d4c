#include "weights/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/shell_quote.h"
#include "weights/shard_index.h"

namespace modelport::weights {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 20;  // of files, in one message

Diagnostic problem(Code code, std::string what, std::vector<std::string> ways_out) {
  Diagnostic d;
  d.code = code;
  d.what = std::move(what);
  d.ways_out = std::move(ways_out);
  return d;
}

Diagnostic bad_file(std::string what, std::vector<std::string> ways_out) {
  return problem(Code::bad_file, std::move(what), std::move(ways_out));
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_pickle(const fs::path& path) {
  const std::string file = path.filename().string();
  const fs::path extension = path.extension();
  return file.starts_with("pytorch_model") || extension == ".pt" || extension == ".pth" ||
         extension == ".ckpt";
}

std::string how_to_convert(const fs::path& file) {
  if (!file.filename().string().starts_with("pytorch_model-") && file.extension() != ".json") {
    return fmt::format(
        "python -c 'import sys, torch, safetensors.torch as s; w = torch.load(sys.argv[1], "
        "weights_only=True); s.save_file({{k: v.clone().contiguous() for k, v in w.items()}}, "
        "sys.argv[2], {{\"format\": \"pt\"}})' {} {}",
        shell_quote(file.string()), shell_quote((file.parent_path() / kSingleFile).string()));
  }
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  return fmt::format(
      "python -c 'import sys; from transformers import AutoModelForCausalLM as M; "
      "M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])' {} {} (or the class of your "
      "model)",
      shell_quote(folder), shell_quote(folder + "-safetensors"));
}

/// Why a folder cannot be opened, from what it does hold.
[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::vector<std::string> safetensors;
  std::vector<fs::path> pickles;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() == ".safetensors") safetensors.push_back(path.filename().string());
    if (is_pickle(path)) pickles.push_back(path);
  }
  if (error) {
    throw ExportError(
        bad_file(fmt::format("cannot read the folder {}: {}", folder.string(), error.message()),
                 {"give yourself the right to read it (chmod u+rx)"}));
  }
  std::sort(safetensors.begin(), safetensors.end());
  std::sort(pickles.begin(), pickles.end());
  if (!safetensors.empty()) {
    Diagnostic d =
        bad_file(fmt::format("{}: neither {} nor {}", folder.string(), kSingleFile, kIndexFile),
                 {fmt::format("name the file to use: {}",
                              shell_quote((folder / safetensors.front()).string())),
                  fmt::format("if these are shards, download {} too", kIndexFile)});
    const std::size_t shown = std::min(safetensors.size(), kMostNames);
    d.notes = {fmt::format("found   {}{}",
                           fmt::join(safetensors.begin(),
                                     safetensors.begin() + static_cast<std::ptrdiff_t>(shown), " "),
                           safetensors.size() > shown ? " …" : "")};
    throw ExportError(std::move(d));
  }
  if (!pickles.empty()) {
    throw ExportError(bad_file(
        fmt::format("{}: only a pickle checkpoint ({}), which can run code when it is loaded and "
                    "cannot be memory-mapped safely",
                    folder.string(), pickles.front().filename().string()),
        {how_to_convert(pickles.front())}));
  }
  throw ExportError(bad_file(
      fmt::format("{}: no weights here (neither {} nor {})", folder.string(), kSingleFile,
                  kIndexFile),
      {"name a folder made by save_pretrained, or download one: hf download <model> --local-dir "
       "<folder>"}));
}

/// The files of a checkpoint and, if there is an index, what it promises.
struct Layout {
  std::vector<fs::path> files;  // sorted
  fs::path index;               // empty: one file, no index
  std::map<std::string, std::string> weight_map;
};

Layout read_index(const fs::path& index) {
  const MappedFile file = MappedFile::open(index);
  const std::span<const std::byte> bytes = file.bytes();
  Layout layout;
  layout.index = index;
  layout.weight_map = parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                        index.string());
  std::set<std::string> names;
  for (const auto& [tensor, shard] : layout.weight_map) names.insert(shard);
  for (const std::string& shard : names) layout.files.push_back(index.parent_path() / shard);
  return layout;
}

Layout find_files(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    // The order in which transformers looks.
    if (is_file(path / kSingleFile)) return {{path / kSingleFile}, {}, {}};
    if (is_file(path / kIndexFile)) return read_index(path / kIndexFile);
    refuse_folder(path);
  }
  if (path.extension() == ".json") return read_index(path);
  if (is_file(path) && is_pickle(path)) {
    throw ExportError(bad_file(
        fmt::format("{}: a pickle checkpoint, which can run code when it is loaded", path.string()),
        {how_to_convert(path)}));
  }
  return {{path}, {}, {}};
}

using Loaded = std::map<fs::path, std::vector<CheckpointTensor>>;

/// Opens every file before it complains about any.
Loaded load_files(const Layout& layout, Diagnostics& found) {
  Loaded loaded;
  for (const fs::path& path : layout.files) {
    std::error_code ignored;
    if (!layout.index.empty() && !fs::exists(path, ignored)) {
      found.add(bad_file(fmt::format("{} does not exist, and {} names it", path.string(),
                                     layout.index.filename().string()),
                         {"download the missing shard"}));
      continue;
    }
    try {
      const auto file = std::make_shared<const MappedFile>(MappedFile::open(path));
      SafetensorsHeader header = parse_safetensors(file->bytes(), path.string());
      std::vector<CheckpointTensor>& tensors = loaded[path];
      for (TensorEntry& entry : header.tensors) tensors.push_back({std::move(entry), file});
    } catch (const ExportError& error) {
      for (const Diagnostic& d : error.diagnostics()) found.add(d);
    }
  }
  return loaded;
}

/// Every tensor that the index promises must be in the shard that it names.
void check_promises(const Layout& layout, const Loaded& loaded, Diagnostics& found) {
  std::map<fs::path, std::vector<std::string>> broken;
  std::map<fs::path, std::set<std::string_view>> held;
  for (const auto& [path, tensors] : loaded) {
    for (const CheckpointTensor& tensor : tensors) held[path].insert(tensor.entry.name);
  }
  for (const auto& [tensor, shard] : layout.weight_map) {
    const fs::path path = layout.index.parent_path() / shard;
    if (loaded.contains(path) && !held[path].contains(tensor)) broken[path].push_back(tensor);
  }
  for (const auto& [path, tensors] : broken) {
    Diagnostic d = bad_file(
        fmt::format("{} lacks {} that {} says it holds", path.string(),
                    tensors.size() == 1 ? "a tensor" : "tensors", layout.index.filename().string()),
        {"download the shard and the index again, from one revision"});
    for (const std::string& tensor : tensors) d.notes.push_back("missing " + quote_text(tensor));
    found.add(std::move(d));
  }
}

/// How many characters two names share at their ends: wrappers add prefixes, not suffixes.
std::size_t common_suffix(std::string_view a, std::string_view b) {
  const auto [end, ignored] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<std::size_t>(end - a.rbegin());
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
  const Layout layout = find_files(path);
  Diagnostics found;
  Loaded loaded = load_files(layout, found);
  check_promises(layout, loaded, found);
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  for (auto& [file, tensors] : loaded) {
    for (CheckpointTensor& tensor : tensors) {
      const std::string name = tensor.entry.name;
      const auto promised = layout.weight_map.find(name);
      const bool elsewhere = promised != layout.weight_map.end() &&
                             layout.index.parent_path() / promised->second != file;
      if (elsewhere) continue;  // a copy that the index does not speak of
      if (!checkpoint.by_name_.emplace(name, checkpoint.tensors_.size()).second) {
        found.add(
            bad_file(fmt::format("{}: tensor {} is in two shards, and the index names neither",
                                 layout.index.string(), quote_text(name)),
                     {"download the shards and the index again, from one revision"}));
        continue;
      }
      checkpoint.tensors_.push_back(std::move(tensor));
    }
  }
  found.throw_if_any();
  return checkpoint;
}

const CheckpointTensor* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const CheckpointTensor& Checkpoint::at(std::string_view name) const {
  if (const CheckpointTensor* tensor = find(name)) return *tensor;
  std::vector<std::pair<std::size_t, std::string_view>> near;
  for (const CheckpointTensor& tensor : tensors_) {
    near.emplace_back(common_suffix(tensor.entry.name, name), tensor.entry.name);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Diagnostic d =
      problem(Code::missing_weight,
              fmt::format("{}: no tensor {} in this checkpoint", path_.string(), quote_text(name)),
              {"check that the checkpoint belongs to this model class"});
  constexpr std::size_t kMostGuesses = 3;
  for (std::size_t i = 0; i < std::min(near.size(), kMostGuesses); ++i) {
    // Nearly all names end in ".weight" or ".bias"; that alone is no likeness.
    if (near[i].first <= std::string_view(".weight").size()) break;
    d.notes.push_back("close    " + quote_text(near[i].second));
  }
  throw ExportError(std::move(d));
}

}  // namespace modelport::weights
