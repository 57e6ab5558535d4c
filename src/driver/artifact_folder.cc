#include "driver/artifact_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ranges>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "driver/replace.h"

namespace modelport::driver {
namespace {

struct stat status_of(const Path& path) {
  struct stat status{};
  ::stat(path.c_str(), &status);
  return status;
}

/// Whether a folder that takes the place of this one can be made beside it. It can not where this
/// is a mount point.
bool can_be_beside(const Path& folder) {
  if (!is_there(folder)) return true;
  const Path parent = folder.parent_path();
  return parent != folder && ::access(parent.c_str(), W_OK | X_OK) == 0 &&
         status_of(parent).st_dev == status_of(folder).st_dev;
}

mode_t umask_of_process() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

std::vector<std::filesystem::directory_entry> entries(const Path& folder) {
  std::error_code error;
  std::vector<std::filesystem::directory_entry> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    found.push_back(entry);
  return found;
}

bool is_folder(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  return !entry.is_symlink(error) && entry.is_directory(error);
}

bool is_unfinished_of(const std::string& name, const std::string& owner) {
  return is_unfinished_name(name) && name.starts_with("." + owner + ".") &&
         name.size() == owner.size() + std::string_view("..12345678.partial").size();
}

}  // namespace

ArtifactFolder::ArtifactFolder(Destination destination) : destination_(std::move(destination)) {
  const Path out = std::filesystem::absolute(destination_.out).lexically_normal();
  target_ = destination_.is_file ? out.parent_path() : std::filesystem::weakly_canonical(out);
  if (!target_.has_filename()) target_ = target_.parent_path();  // "out/" is the folder "out"
  name_ = (destination_.is_file ? out : target_).filename().string();
  beside_ = !destination_.is_file && can_be_beside(target_);
  home_ = beside_ ? target_.parent_path() : target_;
  made_ = make_folders(home_);
  try {
    const Lock only_one(home_, Lock::Busy::wait);
    sweep(home_);
    if (beside_ && is_there(target_)) sweep(target_);
    open();
  } catch (...) {
    clean_up();
    throw;
  }
}

void ArtifactFolder::open() {
  do {
    folder_ = make_unique_folder(home_, "." + name_ + ".", ".partial");
    lock_ = Lock(folder_, Lock::Busy::give_up);
  } while (lock_.busy() || !is_there(folder_));  // somebody took it for one whose process is gone
  if (!beside_) return;
  const bool replaces = is_there(target_);
  const mode_t mode = replaces ? status_of(target_).st_mode & 07777 : 0777 & ~umask_of_process();
  ::chmod(folder_.c_str(), mode);
}

void ArtifactFolder::sweep(const Path& folder) const {
  for (const auto& entry : entries(folder)) {
    if (!is_unfinished_of(entry.path().filename().string(), name_)) continue;
    const Lock gone(entry.path(), Lock::Busy::give_up);
    if (!gone.held()) continue;
    if (is_half_replaced(entry.path())) take_back(entry.path(), target_);
    remove_tree(entry.path());
  }
}

std::vector<Path> ArtifactFolder::commit() {
  const std::scoped_lock guard(busy_);
  if (folder_.empty()) throw InternalError("a folder that is committed twice");
  const Lock only_one(home_, Lock::Busy::wait);
  std::vector<Path> files;
  if (destination_.is_file) {
    files = replace_model(folder_, target_, name_);
  } else {
    const EarlierExport earlier(target_, destination_.parts);
    files = files_below(folder_);
    std::erase(files, Path(kList));
    // What lies there already and is no export's stays the user's, even where we write it anew.
    const auto is_ours = [&](const Path& file) {
      return earlier.wrote(file) || !is_there(target_ / file);
    };
    std::vector<Path> listed;
    std::ranges::copy_if(files, std::back_inserter(listed), is_ours);
    write_list(folder_, listed);
    sync_tree(folder_);
    take_place(earlier);
    for (Path& file : files) file = target_ / file;
  }
  made_.clear();
  clean_up();
  return files;
}

void ArtifactFolder::take_place(const EarlierExport& earlier) {
  if (beside_ && !is_there(target_)) {
    move(folder_, target_);
    sync(home_);
    return;
  }
  if (beside_ && carry_over(earlier)) {
    sync_tree(folder_);
    if (exchange(folder_, target_)) {
      sync(home_);
      drop_replaced(earlier);
      return;
    }
  }
  for (const Path& carried : carried_ | std::views::reverse) {
    if (!remove_folder(carried)) remove_file(carried);
  }
  replace_files(folder_, target_, earlier);
}

/// Gives everything that stays of the old folder a second name in the new one.
bool ArtifactFolder::carry_over(const EarlierExport& earlier) {
  try {
    return carry_over(Path(), earlier);
  } catch (const ExportError&) {
    return false;
  }
}

bool ArtifactFolder::carry_over(const Path& relative, const EarlierExport& earlier) {
  for (const auto& entry : entries(target_ / relative)) {
    const Path name = relative / entry.path().filename();
    const Path kept = folder_ / name;
    if (!is_folder(entry)) {
      if (earlier.wrote(name) || is_there(kept)) continue;
      if (!link(entry.path(), kept)) return false;
      carried_.push_back(kept);
      continue;
    }
    if (is_unfinished_name(name.filename().string())) {
      // Another export is being written there, unless its process is gone.
      if (!Lock(entry.path(), Lock::Busy::give_up).held()) return false;
      continue;
    }
    if (::access(entry.path().c_str(), R_OK | X_OK) != 0) return false;
    const bool was_empty = entries(entry.path()).empty();
    if (!is_there(kept)) {
      make_folder(kept);
      carried_.push_back(kept);
      ::chmod(kept.c_str(), status_of(entry.path()).st_mode & 07777);
    }
    if (!carry_over(name, earlier)) return false;
    if (!was_empty && remove_folder(kept) && !carried_.empty() && carried_.back() == kept)
      carried_.pop_back();
  }
  return true;
}

/// `folder_` is what was replaced. What came into it since the rest was carried over is somebody
/// else's, and goes where its writer expects it.
void ArtifactFolder::drop_replaced(const EarlierExport& earlier) noexcept {
  try {
    for (const Path& file : files_below(folder_)) {
      const bool unfinished = is_unfinished_name(file.begin()->string());
      if (unfinished || earlier.wrote(file) || is_there(target_ / file)) continue;
      make_folders((target_ / file).parent_path());
      move(folder_ / file, target_ / file);
    }
    remove_tree(folder_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the next export sweeps
  }
}

bool ArtifactFolder::discard() noexcept {
  const std::scoped_lock guard(busy_);
  const bool was_open = !folder_.empty();
  clean_up();
  return was_open;
}

void ArtifactFolder::clean_up() noexcept {
  if (!folder_.empty()) remove_tree(std::exchange(folder_, {}));
  lock_ = Lock();
  for (const Path& folder : made_ | std::views::reverse)
    if (!remove_folder(folder)) break;
  made_.clear();
}

bool is_half_replaced_at(const Path& place) {
  const Path path = std::filesystem::weakly_canonical(place);
  const auto stopped_in = [](const Path& folder, const std::string& owner) {
    return std::ranges::any_of(entries(folder), [&](const auto& entry) {
      const std::string name = entry.path().filename().string();
      return is_unfinished_of(name, owner) && is_half_replaced(entry.path());
    });
  };
  const bool is_file = !std::filesystem::is_directory(path);
  const Path folder = is_file ? path.parent_path() : path;
  const std::string owner = folder.filename().string();
  return stopped_in(folder, owner) || stopped_in(folder.parent_path(), owner);
}

}  // namespace modelport::driver
