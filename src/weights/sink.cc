#include "weights/sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace modelport::weights {

void fail_to_write(const std::filesystem::path& path, int error) {
  Diagnostic d;
  d.code = Code::bad_file;
  d.what =
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      d.ways_out = {"free some disk space, or write to another folder"};
      break;
    case EFBIG:
      d.ways_out = {"raise the limit on the size of a file: ulimit -f unlimited",
                    "write several smaller files: shard_bytes=..., or --shard-size 2GB"};
      break;
    case EFAULT:
      d.ways_out = {"a checkpoint file became shorter while it was read: restore it, export again"};
      break;
    default:
      d.ways_out = {"write to a folder that exists and that you may write to"};
  }
  throw ExportError(std::move(d));
}

namespace {

/// Unique in this process and among processes, in the same folder so that rename() is atomic.
std::filesystem::path name_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() /
         fmt::format(".{}.{}-{}.partial", path.filename().string(), ::getpid(), counter++);
}

/// A file without a name: whatever happens to the process, nothing of it is left. -1 where the file
/// system has none, or where it could not be given its name later.
int open_nameless(const std::filesystem::path& path) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  return ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

}  // namespace

void MemorySink::append(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), beside_(name_beside(path_)), fd_(open_nameless(path_)) {
  if (fd_ >= 0) return;
  fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail_to_write(path_, errno);
  named_ = true;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (named_) ::unlink(beside_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (finished_) throw InternalError("write to a finished file");
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // Linux takes less than 2 GiB a call
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_to_write(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void AtomicFile::finish() {
  if (finished_) return;
  finished_ = true;
  // No fsync: a failed write or a killed process leaves no half file without it. Against power cuts
  // the driver waits for the disk, once for all files of an artifact.
  // Network file systems report a full disk only when a file is closed; they have no nameless
  // files, which end when they are closed.
  if (named_ && ::close(std::exchange(fd_, -1)) != 0) fail_to_write(path_, errno);
}

void AtomicFile::give_name() {
  const std::string open_file = fmt::format("/proc/self/fd/{}", fd_);
  if (::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, beside_.c_str(), AT_SYMLINK_FOLLOW) != 0)
    fail_to_write(path_, errno);
  named_ = true;
  if (::close(std::exchange(fd_, -1)) != 0) fail_to_write(path_, errno);
}

void AtomicFile::commit() {
  finish();
  if (!named_) give_name();
  if (::rename(beside_.c_str(), path_.c_str()) != 0) fail_to_write(path_, errno);
  named_ = false;
}

}  // namespace modelport::weights
