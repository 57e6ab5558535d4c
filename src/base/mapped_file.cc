#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace modelport {
namespace {

/// Closes the descriptor on every path out; the mapping outlives it.
struct Descriptor {
  int fd = -1;
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string way_out(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "give yourself the right to read it (chmod u+r), or copy it to a folder of yours";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENOMEM:
      return "raise the limit of virtual memory (ulimit -v unlimited)";
    default:
      return "check the path; a checkpoint is a folder or a .safetensors file on this machine";
  }
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason, int error) {
  throw ExportError(Diagnostic{.code = Code::bad_file,
                               .what = fmt::format("cannot open {}: {}", path.string(), reason),
                               .where = {},
                               .module_path = {},
                               .notes = {},
                               .ways_out = {way_out(error)}});
}

}  // namespace

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const auto fail_with = [&](int error) {
    fail(path, error == ENOENT ? "it does not exist" : std::generic_category().message(error),
         error);
  };
  // Without O_NONBLOCK, opening a named pipe would wait for its writer for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) fail_with(errno);
  struct stat status{};
  if (::fstat(file.fd, &status) != 0) fail_with(errno);
  if (S_ISDIR(status.st_mode)) fail(path, "it is a directory, not a file", 0);
  if (!S_ISREG(status.st_mode)) fail(path, "it is not a regular file", 0);

  MappedFile mapped;
  mapped.path_ = path;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return mapped;  // mmap refuses a length of zero
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) fail_with(errno);
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

MappedFile::~MappedFile() { close(); }

void MappedFile::close() noexcept {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

void MappedFile::forget(std::span<const std::byte> part) const noexcept {
  if (data_ == nullptr || part.empty()) return;
  const auto base = reinterpret_cast<std::uintptr_t>(data_);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  auto end = begin + part.size();
  if (begin < base || end > base + size_) return;
  begin = (begin + page - 1) / page * page;
  end = end / page * page;
  // A private mapping that was never written holds nothing but the file's own bytes, so dropping
  // its pages loses nothing.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace modelport
