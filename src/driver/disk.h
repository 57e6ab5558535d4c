// Changes to the disk, one system call each. A process may be killed before any of them: a test
// does so at every one, through `before_step`.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace modelport::driver {

using Path = std::filesystem::path;

/// Called before each change of this process; empty unless a test sets it.
std::function<void()>& before_step();

/// A folder that this process has for itself among those that lock it, until the lock is gone. A
/// file system may know no locks: then it is neither held nor busy.
class Lock {
 public:
  enum class Busy { wait, give_up };
  Lock() = default;
  Lock(const Path& folder, Busy busy);
  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;
  ~Lock();
  bool held() const { return held_; }
  bool busy() const { return busy_; }  // somebody else has it, or the folder is gone

 private:
  int fd_ = -1;
  bool held_ = false;
  bool busy_ = false;
};

bool is_there(const Path& path);  // whatever it is, a symbolic link to nothing too
/// The files below a folder, relative to it and in order; links are files.
std::vector<Path> files_below(const Path& folder);

void make_folder(const Path& path, mode_t mode = 0777);
/// With the folders above it; those that were not there before, in the order they were made.
std::vector<Path> make_folders(const Path& path);
/// Eight letters that nobody else has made.
std::string unique_word();
/// A folder under a name that nothing else has.
Path make_unique_folder(const Path& parent, std::string_view prefix, std::string_view suffix);
void move(const Path& from, const Path& to);
/// Swaps two folders in one step; false where the system cannot.
bool exchange(const Path& one, const Path& other);
/// A second name; false where a file cannot have one there.
bool link(const Path& from, const Path& to);
void remove_file(const Path& path);
/// Whether an empty folder was there and is gone.
bool remove_folder(const Path& path) noexcept;
void remove_tree(const Path& path) noexcept;
void write_file(const Path& path, std::string_view content);
/// Waits until a file, or the list of names of a folder, is on the disk.
void sync(const Path& path);
void sync_tree(const Path& folder);

}  // namespace modelport::driver
