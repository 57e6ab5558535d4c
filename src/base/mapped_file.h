// A file mapped read-only into memory: pages are read from disk when they are first touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace modelport {

class MappedFile {
 public:
  /// Throws ExportError (Code::bad_file) that names the path and the reason. An empty file is fine.
  static MappedFile open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  /// Drops the pages that lie wholly inside `part` from this process: after streaming a large
  /// weight, memory stays flat. The bytes stay valid; touching them reads the file again.
  void forget(std::span<const std::byte> part) const noexcept;

 private:
  void close() noexcept;

  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace modelport
