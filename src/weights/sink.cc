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
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  Diagnostic d;
  d.code = Code::bad_file;
  d.what =
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      d.ways_out = {"free some disk space, or write to another folder"};
      break;
    case EFAULT:
      d.ways_out = {"a checkpoint file became shorter while it was read: restore it, export again"};
      break;
    default:
      d.ways_out = {"write to a folder that exists and that you may write to"};
  }
  throw ExportError(std::move(d));
}

/// Unique in this process and among processes, in the same folder so that rename() is atomic.
std::filesystem::path name_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() /
         fmt::format(".{}.{}-{}.partial", path.filename().string(), ::getpid(), counter++);
}

}  // namespace

void MemorySink::append(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), beside_(name_beside(path_)) {
  fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path_, errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(beside_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (fd_ < 0) throw InternalError("write to a finished file");
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // Linux takes less than 2 GiB a call
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

void AtomicFile::finish() {
  if (fd_ < 0) return;
  // No fsync: the promise is about failing exports, killed processes and full disks, not power
  // cuts. Network file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) fail(path_, errno);
}

void AtomicFile::commit() {
  finish();
  if (::rename(beside_.c_str(), path_.c_str()) != 0) fail(path_, errno);
  committed_ = true;
}

}  // namespace modelport::weights
