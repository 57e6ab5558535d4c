// A whole export into a folder that cannot be swapped: a mount point, a parent that is not ours, a
// file system that cannot do it. What was there waits in `.before`, and the new list of files is
// moved last: where `.before` and that list lie together, the replacement was stopped.
#include <algorithm>

#include "base/error.h"
#include "driver/replace.h"

namespace modelport::driver {
namespace {

constexpr const char* kBefore = ".before";

bool is_unfinished(const Path& relative) { return is_unfinished_name(relative.begin()->string()); }

/// Models are first to go and last to come, so that no reader takes what is between for whole.
void models_first(std::vector<Path>& files) {
  std::ranges::stable_partition(files, [](const Path& file) {
    const Path kind = file.extension();
    return kind == ".onnx" || kind == ".pte" || kind == ".xml";
  });
}

void move_below(const Path& from, const Path& to, const Path& relative) {
  make_folders((to / relative).parent_path());
  move(from / relative, to / relative);
}

void sync_folders(const Path& root, const std::vector<Path>& files) {
  std::vector<Path> folders{root};
  for (const Path& file : files) folders.push_back((root / file).parent_path());
  std::ranges::sort(folders);
  const auto repeated = std::ranges::unique(folders);
  folders.erase(repeated.begin(), repeated.end());
  for (const Path& folder : folders)
    if (is_there(folder)) sync(folder);
}

}  // namespace

bool is_half_replaced(const Path& staged) {
  return is_there(staged / kBefore) && is_there(staged / kList);
}

void replace_files(const Path& staged, const Path& target, const EarlierExport& earlier) {
  std::vector<Path> files = files_below(staged);
  std::vector<Path> old;
  for (const Path& file : files_below(target)) {
    if (is_unfinished(file)) continue;
    if (earlier.wrote(file) || std::ranges::binary_search(files, file)) old.push_back(file);
  }
  std::erase(files, Path(kList));
  models_first(old);
  models_first(files);
  std::ranges::reverse(files);
  const Path before = staged / kBefore;
  make_folder(before);
  sync(staged);
  try {
    for (const Path& file : old) move_below(target, before, file);
    sync_folders(before, old);
    sync_folders(target, old);
    for (const Path& file : files) move_below(staged, target, file);
    sync_folders(target, files);
    move(staged / kList, target / kList);
    sync(target);
  } catch (const ExportError&) {
    take_back(staged, target);
    throw;
  }
  for (const Path& file : old)
    if (file.has_parent_path()) remove_folder(target / file.parent_path());
}

void take_back(const Path& staged, const Path& target) {
  std::vector<Path> restored;
  for (const Path& file : read_list(staged))
    if (!is_there(staged / file) && is_there(target / file)) move_below(target, staged, file);
  for (const Path& file : files_below(staged / kBefore)) {
    move_below(staged / kBefore, target, file);
    restored.push_back(file);
  }
  sync_folders(target, restored);
}

}  // namespace modelport::driver
