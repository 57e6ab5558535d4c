// Reads a zip archive in memory: stored entries in place, compressed ones unpacked. Made for files
// that may be damaged or hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace modelport::pt2 {

class ZipArchive {
 public:
  struct Entry {
    std::string name;
    std::uint16_t method = 0;  // 0: stored, 8: deflated
    std::uint32_t crc = 0;
    std::uint64_t packed = 0;  // bytes in the archive
    std::uint64_t size = 0;
    std::uint64_t header = 0;  // offset of the local header
  };

  /// `bytes` must outlive the archive; `name` is what messages call it. Throws ExportError
  /// (Code::bad_file).
  ZipArchive(std::span<const std::byte> bytes, std::string name);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  /// Throws ExportError if there is none.
  const Entry& at(std::string_view name) const;
  /// The bytes of an entry, with the check sum tested: in place if it is stored, else in memory of
  /// their own, which `owned` then holds. Every call does all of that anew.
  struct Contents {
    std::span<const std::byte> bytes;
    std::shared_ptr<const std::vector<std::byte>> owned;
  };
  Contents read(const Entry& entry) const;
  std::string text(const Entry& entry) const;
  /// How much memory all that is made of this archive may take. An archive whose entries would
  /// unpack to more is refused when it is opened.
  std::uint64_t room() const;

  const std::string& name() const { return name_; }
  [[noreturn]] void fail(std::string_view why) const;

 private:
  struct Directory {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::uint64_t count = 0;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void read_wide_fields(Entry& entry, std::span<const std::byte> extra) const;
  std::uint64_t number(std::uint64_t offset, int width) const;
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const;
  std::span<const std::byte> data(const Entry& entry) const;
  void check_sizes() const;
  std::vector<std::byte> unpack(const Entry& entry) const;

  std::span<const std::byte> bytes_;
  std::string name_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace modelport::pt2
