// The zip format, as far as stored entries need it (APPNOTE 6.3: 4.3.7 local header, 4.3.9 data
// descriptor, 4.3.12 central directory, 4.3.14 zip64).
#include "backends/pt2/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace modelport::pt2 {
namespace {

constexpr std::uint32_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t kMax16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kAlignment = 64;   // what torch pads to
constexpr std::uint16_t kFlags = 0x0808;   // sizes follow the data; names are UTF-8
constexpr std::uint16_t kFirstDay = 0x21;  // 1980-01-01, the zero of zip's calendar
constexpr std::size_t kLocalHeader = 30;

/// Little-endian fields, whatever the machine.
class Fields {
 public:
  Fields& u16(std::uint64_t value) { return put(value, 2); }
  Fields& u32(std::uint64_t value) { return put(value, 4); }
  Fields& u64(std::uint64_t value) { return put(value, 8); }
  Fields& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Fields& put(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes_ += static_cast<char>((value >> (8 * i)) & 0xff);
    return *this;
  }
  std::string bytes_;
};

/// An extra field of torch's own kind ("FB") that brings the data behind it to the alignment.
std::string padding(std::uint64_t data_offset) {
  constexpr std::uint64_t kHead = 4;
  const std::uint64_t fill = (kAlignment - (data_offset + kHead) % kAlignment) % kAlignment;
  return Fields().text("FB").u16(fill).text(std::string(fill, 'Z')).bytes();
}

}  // namespace

void ZipWriter::EntrySink::append(std::span<const std::byte> bytes) {
  Entry& entry = zip_.entries_.back();
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t piece = std::min<std::size_t>(bytes.size() - at, 1U << 30);
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data() + at);
    entry.crc = static_cast<std::uint32_t>(crc32(entry.crc, data, static_cast<uInt>(piece)));
    at += piece;
  }
  entry.size += bytes.size();
  zip_.out_.write(bytes);
}

weights::Sink& ZipWriter::begin(std::string name) {
  end();
  if (name.size() > kMax16) throw InternalError("a zip entry with a name of more than 64 KiB");
  const std::uint64_t header = out_.written();
  const std::string extra = padding(header + kLocalHeader + name.size());
  Fields fields;
  fields.u32(0x04034b50).u16(20).u16(kFlags).u16(0).u16(0).u16(kFirstDay);
  fields.u32(0).u32(0).u32(0).u16(name.size()).u16(extra.size()).text(name).text(extra);
  out_.write(fields.bytes());
  entries_.push_back({std::move(name), header});
  open_ = true;
  return sink_;
}

void ZipWriter::end() {
  if (!open_) return;
  open_ = false;
  const Entry& entry = entries_.back();
  Fields fields;
  fields.u32(0x08074b50).u32(entry.crc);
  if (entry.size >= kMax32) {
    fields.u64(entry.size).u64(entry.size);
  } else {
    fields.u32(entry.size).u32(entry.size);
  }
  out_.write(fields.bytes());
}

void ZipWriter::write_directory_entry(const Entry& entry) {
  const bool big_size = entry.size >= kMax32;
  const bool big_offset = entry.header >= kMax32;
  Fields wide;
  if (big_size) wide.u64(entry.size).u64(entry.size);
  if (big_offset) wide.u64(entry.header);
  Fields extra;
  if (!wide.bytes().empty()) extra.u16(1).u16(wide.bytes().size()).text(wide.bytes());
  const std::uint64_t size = big_size ? kMax32 : entry.size;
  Fields fields;
  fields.u32(0x02014b50).u16(45).u16(extra.bytes().empty() ? 20 : 45).u16(kFlags).u16(0);
  fields.u16(0).u16(kFirstDay).u32(entry.crc).u32(size).u32(size);
  fields.u16(entry.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(0);
  fields.u32(big_offset ? kMax32 : entry.header).text(entry.name).text(extra.bytes());
  out_.write(fields.bytes());
}

void ZipWriter::finish() {
  end();
  const std::uint64_t begin = out_.written();
  for (const Entry& entry : entries_) write_directory_entry(entry);
  const std::uint64_t end = out_.written();
  const std::uint64_t size = end - begin;
  const std::uint64_t count = entries_.size();
  Fields fields;
  if (begin >= kMax32 || size >= kMax32 || count >= kMax16) {
    fields.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0);
    fields.u64(count).u64(count).u64(size).u64(begin);
    fields.u32(0x07064b50).u32(0).u64(end).u32(1);
  }
  const std::uint64_t count16 = std::min<std::uint64_t>(count, kMax16);
  fields.u32(0x06054b50).u16(0).u16(0).u16(count16).u16(count16);
  fields.u32(std::min<std::uint64_t>(size, kMax32))
      .u32(std::min<std::uint64_t>(begin, kMax32))
      .u16(0);
  out_.write(fields.bytes());
}

}  // namespace modelport::pt2
