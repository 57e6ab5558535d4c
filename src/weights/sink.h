// Where writers put bytes: a stream that only grows. Weights pass through it in pieces, so that a
// model never has to fit in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace modelport::weights {

/// Throws what the system refused as an error for the user, by its number (errno).
[[noreturn]] void fail_to_write(const std::filesystem::path& path, int error);

class Sink {
 public:
  virtual ~Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  void write(std::span<const std::byte> bytes) {
    append(bytes);
    written_ += bytes.size();
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  std::uint64_t written() const { return written_; }

 protected:
  Sink() = default;
  virtual void append(std::span<const std::byte> bytes) = 0;

 private:
  std::uint64_t written_ = 0;
};

class MemorySink final : public Sink {
 public:
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 protected:
  void append(std::span<const std::byte> bytes) override;

 private:
  std::vector<std::byte> bytes_;
};

/// Takes the place of `path` on commit(); without commit() nothing is left behind. Until then the
/// file has no name, or where the file system has no such files, one beside `path`.
class AtomicFile final : public Sink {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile() override;

  /// Nothing more is written; reports what the disk refused, so that commit() of many files can
  /// follow when all of them are known to be whole.
  void finish();
  void commit();
  const std::filesystem::path& path() const { return path_; }

 protected:
  void append(std::span<const std::byte> bytes) override;

 private:
  void give_name();

  std::filesystem::path path_;
  std::filesystem::path beside_;
  int fd_ = -1;
  bool named_ = false;  // `beside_` is there
  bool finished_ = false;
};

}  // namespace modelport::weights
