#include "weights/fingerprint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace modelport::weights {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSamples = 256;
constexpr std::uint64_t kLongestHead = 1U << 20;
constexpr std::size_t kAtOnce = 1U << 20;  // fits into a cache

/// A checksum, not a seal: it tells files apart that came to differ, not files that were made to
/// collide. Four lanes, so that the multiplications overlap.
class Hash {
 public:
  void add(const std::byte* data, std::size_t size) {
    length_ += size;
    for (; size >= kBlock; data += kBlock, size -= kBlock) {
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        std::uint64_t word = 0;
        std::memcpy(&word, data + lane * sizeof(word), sizeof(word));
        lanes_[lane] = std::rotl((lanes_[lane] ^ word) * kFactor, 29);
      }
    }
    if (size == 0) return;
    std::array<std::byte, kBlock> rest{};
    std::memcpy(rest.data(), data, size);
    add(rest.data(), kBlock);
    length_ -= kBlock;
  }
  std::uint64_t value() const {
    std::uint64_t mixed = length_ * kFactor;
    for (const std::uint64_t lane : lanes_) {
      mixed = (mixed ^ lane) * kFactor;
      mixed ^= mixed >> 31;
    }
    return mixed;
  }

 private:
  static constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  static constexpr std::size_t kBlock = 32;
  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
  std::uint64_t length_ = 0;
};

class File {
 public:
  explicit File(const std::filesystem::path& path) : path_(path) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail(errno);
    struct stat status{};
    if (::fstat(fd_, &status) != 0) fail(errno);
    size_ = static_cast<std::uint64_t>(status.st_size);
    modified_ = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  std::uint64_t size() const { return size_; }
  std::int64_t modified() const { return modified_; }

  void add(Hash& hash, std::uint64_t begin, std::uint64_t length) {
    const std::uint64_t end = std::min(begin + length, size_);
    while (begin < end) {
      const std::size_t got = read(begin, std::min<std::uint64_t>(end - begin, buffer_.size()));
      if (got == 0) return;  // it became shorter: other contents
      hash.add(buffer_.data(), got);
      begin += got;
    }
  }

 private:
  /// Into the buffer, as much as there is.
  std::size_t read(std::uint64_t begin, std::size_t length) {
    std::size_t done = 0;
    while (done < length) {
      const ssize_t got =
          ::pread(fd_, buffer_.data() + done, length - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(errno);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  [[noreturn]] void fail(int error) {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    throw ExportError(Diagnostic{.code = Code::bad_file,
                                 .what = fmt::format("cannot read {}: {}", path_.string(),
                                                     std::generic_category().message(error)),
                                 .where = {},
                                 .module_path = {},
                                 .notes = {},
                                 .ways_out = {"use files that exist and that you may read"}});
  }

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::int64_t modified_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kAtOnce);
};

/// The names and places of the tensors, which a safetensors file begins with after their length;
/// of any other file, some of its beginning.
std::uint64_t sampled(File& file) {
  Hash hash;
  file.add(hash, 0, kLongestHead);
  const std::uint64_t stride = std::max(kPage, file.size() / kSamples / kPage * kPage);
  for (std::uint64_t at = kLongestHead; at < file.size(); at += stride) file.add(hash, at, kPage);
  if (file.size() > kPage) file.add(hash, file.size() - kPage, kPage);
  return hash.value();
}

std::uint64_t whole(File& file) {
  Hash hash;
  file.add(hash, 0, file.size());
  return hash.value();
}

}  // namespace

std::string Fingerprint::text() const {
  return fmt::format("{}-{}-{:016x}-{:016x}", size, modified, sampled, whole);
}

Fingerprint Fingerprint::parse(std::string_view text, const std::string& name) {
  Fingerprint found;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = true;
  const auto number = [&](auto& value, int base, bool last) {
    const auto [after, error] = std::from_chars(at, end, value, base);
    good = good && error == std::errc() && (last ? after == end : after != end && *after == '-');
    if (good) at = after + (last ? 0 : 1);
  };
  number(found.size, 10, false);
  number(found.modified, 10, false);
  number(found.sampled, 16, false);
  number(found.whole, 16, true);
  if (good) return found;
  throw ExportError(Diagnostic{.code = Code::bad_file,
                               .what = fmt::format("{}: a fingerprint that cannot be read", name),
                               .where = {},
                               .module_path = {},
                               .notes = {},
                               .ways_out = {"export the model again"}});
}

Fingerprint fingerprint(const std::filesystem::path& path) {
  File file(path);
  return {file.size(), file.modified(), sampled(file), whole(file)};
}

bool is_unchanged(const std::filesystem::path& path, const Fingerprint& before) {
  File file(path);
  if (file.size() != before.size || sampled(file) != before.sampled) return false;
  return file.modified() == before.modified || whole(file) == before.whole;
}

}  // namespace modelport::weights
