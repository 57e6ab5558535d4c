#include "driver/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <ranges>
#include <system_error>
#include <utility>

#include "weights/sink.h"

namespace modelport::driver {
namespace {

using weights::fail_to_write;

void step() {
  if (before_step()) before_step()();
}

}  // namespace

std::function<void()>& before_step() {
  static std::function<void()> hook;
  return hook;
}

Lock::Lock(const Path& folder, Busy busy) {
  fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  busy_ = fd_ < 0;
  if (busy_) return;
  const int how = LOCK_EX | (busy == Busy::wait ? 0 : LOCK_NB);
  int result = 0;
  do {
    result = ::flock(fd_, how);
  } while (result != 0 && errno == EINTR);
  held_ = result == 0;
  busy_ = result != 0 && errno == EWOULDBLOCK;
}

Lock::Lock(Lock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), held_(other.held_), busy_(other.busy_) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(held_, other.held_);
  std::swap(busy_, other.busy_);
  return *this;
}

Lock::~Lock() {
  if (fd_ >= 0) ::close(fd_);
}

bool is_there(const Path& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

std::vector<Path> files_below(const Path& folder) {
  std::vector<Path> found;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->is_symlink() || !at->is_directory())
      found.push_back(at->path().lexically_relative(folder));
  }
  if (error) fail_to_write(folder, error.value());
  std::ranges::sort(found);
  return found;
}

void make_folder(const Path& path, mode_t mode) {
  step();
  if (::mkdir(path.c_str(), mode) != 0) fail_to_write(path, errno);
}

std::vector<Path> make_folders(const Path& path) {
  std::vector<Path> missing;
  for (Path at = path; !at.empty() && !is_there(at); at = at.parent_path()) missing.push_back(at);
  std::vector<Path> made;
  for (const Path& folder : missing | std::views::reverse) {
    step();
    if (::mkdir(folder.c_str(), 0777) == 0) {
      made.push_back(folder);
    } else if (errno != EEXIST) {  // another process may make it at the same time
      const int error = errno;
      for (const Path& undone : made | std::views::reverse) remove_folder(undone);
      fail_to_write(folder, error);
    }
  }
  return made;
}

std::string unique_word() {
  static std::random_device source;
  return fmt::format("{:08x}", source());
}

Path make_unique_folder(const Path& parent, std::string_view prefix, std::string_view suffix) {
  step();
  while (true) {
    const Path folder = parent / fmt::format("{}{}{}", prefix, unique_word(), suffix);
    if (::mkdir(folder.c_str(), 0700) == 0) return folder;
    if (errno != EEXIST) fail_to_write(parent, errno);
  }
}

void move(const Path& from, const Path& to) {
  step();
  if (::rename(from.c_str(), to.c_str()) != 0) fail_to_write(to, errno);
}

bool exchange(const Path& one, const Path& other) {
#ifdef RENAME_EXCHANGE
  step();
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
#else
  return false;
#endif
}

bool link(const Path& from, const Path& to) {
  step();
  return ::link(from.c_str(), to.c_str()) == 0;
}

void remove_file(const Path& path) {
  step();
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_to_write(path, errno);
}

bool remove_folder(const Path& path) noexcept { return ::rmdir(path.c_str()) == 0; }

void remove_tree(const Path& path) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void write_file(const Path& path, std::string_view content) {
  step();
  weights::AtomicFile file(path);
  file.write(content);
  file.commit();
}

void sync(const Path& path) {
  step();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) {
    // A file that may not be read, or a link, which is a name of the folder and no file.
    if (errno == ELOOP || errno == EACCES) return;
    fail_to_write(path, errno);
  }
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (error != 0 && error != EINVAL && error != EROFS) fail_to_write(path, error);
}

void sync_tree(const Path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) {
      sync_tree(entry.path());
    } else if (entry.is_regular_file()) {
      sync(entry.path());
    }
  }
  sync(folder);
}

}  // namespace modelport::driver
