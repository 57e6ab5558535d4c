// One model beside other files. Its weights keep the name that everybody expects, so that old and
// new ones compete for it. The new model therefore comes twice: first with weights under names that
// are new, which the old model does not know; then, when nothing refers to the old weights any
// more, with the usual names.
#include <algorithm>
#include <map>

#include "backends/onnx/relocate.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "driver/replace.h"

namespace modelport::driver {
namespace {

using Names = std::map<std::string, std::string>;

void remove_quietly(const Path& path) noexcept {
  try {
    remove_file(path);
  } catch (const ExportError&) {  // NOLINT(bugprone-empty-catch): it is in nobody's way
  }
}

/// The weights under fresh names and the model that refers to them; false if the files could not
/// have two names, and so have the fresh ones only.
bool put_under_fresh_names(const Path& staged, const Path& target, const std::string& name,
                           const Names& fresh) {
  const Path other = staged / (name + "-relocated");
  const MappedFile model = MappedFile::open(staged / name);
  write_file(other, onnx::relocate(model.bytes(), fresh, (staged / name).string()));
  sync(other);
  bool both = true;
  try {
    for (const auto& [usual, unusual] : fresh) {
      if (both && link(staged / usual, target / unusual)) continue;
      both = false;
      move(staged / usual, target / unusual);
    }
    sync(target);
    move(other, target / name);
    sync(target);
  } catch (const ExportError&) {
    for (const auto& [usual, unusual] : fresh) remove_quietly(target / unusual);
    throw;
  }
  return both;
}

/// The new model is in its place; from here on a failure leaves it there, under the fresh names.
bool take_usual_names(const Path& staged, const Path& target, const std::string& name,
                      const Names& fresh) {
  try {
    for (const auto& [usual, unusual] : fresh) move(staged / usual, target / usual);
    sync(target);
    move(staged / name, target / name);
    sync(target);
  } catch (const ExportError&) {
    return false;
  }
  return true;
}

void put_beside(const Path& staged, const Path& target, const std::vector<std::string>& data) {
  std::vector<std::string> moved;
  try {
    for (const std::string& file : data) {
      move(staged / file, target / file);
      moved.push_back(file);
    }
    sync(target);
  } catch (const ExportError&) {
    for (const std::string& file : moved) remove_quietly(target / file);
    throw;
  }
}

void remove_old_weights(const Path& target, const std::string& name,
                        const std::vector<Path>& kept) {
  std::error_code error;
  std::vector<Path> old;
  for (const auto& entry : std::filesystem::directory_iterator(target, error)) {
    const bool of_model = is_data_of(entry.path().filename().string(), name);
    if (of_model && std::ranges::find(kept, entry.path()) == kept.end())
      old.push_back(entry.path());
  }
  for (const Path& file : old) remove_quietly(file);
}

}  // namespace

std::vector<Path> replace_model(const Path& staged, const Path& target, const std::string& name) {
  std::vector<std::string> data;
  Names fresh;
  for (const Path& file : files_below(staged)) {
    if (file == name) continue;
    data.push_back(file.string());
    if (is_there(target / file)) fresh[file.string()] = file.string() + "-" + unique_word();
  }
  sync_tree(staged);
  bool usual_names = true;
  if (fresh.empty()) {
    put_beside(staged, target, data);
    move(staged / name, target / name);
    sync(target);
  } else {
    std::vector<std::string> free;
    std::ranges::copy_if(data, std::back_inserter(free),
                         [&](const std::string& file) { return !fresh.contains(file); });
    put_beside(staged, target, free);
    usual_names = put_under_fresh_names(staged, target, name, fresh) &&
                  take_usual_names(staged, target, name, fresh);
  }
  std::vector<Path> files{target / name};
  for (const std::string& file : data)
    files.push_back(target / (usual_names || !fresh.contains(file) ? file : fresh.at(file)));
  remove_old_weights(target, name, files);
  return files;
}

}  // namespace modelport::driver
