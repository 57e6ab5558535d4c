// Writes a zip archive as torch writes its own: entries stored, their data aligned to 64 bytes so
// that it can be mapped, no clock. Grows only, so weights can pass through without being held.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/sink.h"

namespace modelport::pt2 {

class ZipWriter {
 public:
  /// `out` must be at its start and outlive the writer.
  explicit ZipWriter(weights::Sink& out) : out_(out) {}

  /// Opens an entry; its data goes to the sink until the next `begin` or `finish`.
  weights::Sink& begin(std::string name);
  void add(std::string name, std::string_view data) { begin(std::move(name)).write(data); }
  /// Writes the directory. Nothing may be added after it.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t header = 0;  // offset of the local header
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
  };
  /// Counts the bytes of the open entry and their check sum on the way out.
  class EntrySink final : public weights::Sink {
   public:
    explicit EntrySink(ZipWriter& zip) : zip_(zip) {}

   protected:
    void append(std::span<const std::byte> bytes) override;

   private:
    ZipWriter& zip_;
  };
  void end();
  void write_directory_entry(const Entry& entry);

  weights::Sink& out_;
  EntrySink sink_{*this};
  std::vector<Entry> entries_;
  bool open_ = false;
};

}  // namespace modelport::pt2
