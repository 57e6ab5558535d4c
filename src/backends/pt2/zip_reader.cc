// The zip format, read from its end. Every offset and size is held against the bytes there are.
#include "backends/pt2/zip_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/json.h"

namespace modelport::pt2 {
namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMax16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint64_t kEndRecord = 22;
constexpr std::uint64_t kLocalHeader = 30;
constexpr std::uint64_t kDirectoryEntry = 46;
/// torch stores weights as they are. Of a program that somebody packed, this much comes out of a
/// byte, and a small one may have some room more.
constexpr std::uint64_t kRoomPerByte = 8;
constexpr std::uint64_t kLeastRoom = std::uint64_t{32} << 20;
/// What zlib's counters hold.
constexpr std::uint64_t kLargestUnpacked = kMax32;
/// Of a check sum that one thread makes.
constexpr std::size_t kPiece = std::size_t{16} << 20;

const Bytef* as_bytef(std::span<const std::byte> bytes) {
  return reinterpret_cast<const Bytef*>(bytes.data());
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32(0, as_bytef(bytes), static_cast<uInt>(bytes.size())));  // at most a piece
}

/// Weights are gigabytes, and zlib does about one a second: all cores work on them.
std::uint32_t checksum_of_all(std::span<const std::byte> bytes) {
  if (bytes.size() <= kPiece) return checksum(bytes);
  const std::size_t count = (bytes.size() - 1) / kPiece + 1;
  const auto piece = [&](std::size_t i) {
    return bytes.subspan(i * kPiece, std::min(kPiece, bytes.size() - i * kPiece));
  };
  std::vector<std::uint32_t> sums(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) sums[i] = checksum(piece(i));
  };
  {
    std::vector<std::jthread> others;
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(cores, count); ++i) others.emplace_back(work);
    work();
  }
  uLong sum = sums[0];
  for (std::size_t i = 1; i < count; ++i)
    sum = crc32_combine(sum, sums[i], static_cast<z_off_t>(piece(i).size()));
  return static_cast<std::uint32_t>(sum);
}

}  // namespace

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  read_directory(find_directory());
  check_sizes();
}

std::uint64_t ZipArchive::room() const { return kLeastRoom + kRoomPerByte * bytes_.size(); }

void ZipArchive::check_sizes() const {
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  for (const Entry& entry : entries_) {
    const bool overflows =
        __builtin_add_overflow(packed, entry.packed, &packed) ||
        __builtin_add_overflow(unpacked, entry.method == 0 ? 0 : entry.size, &unpacked);
    // Entries that lie over each other would be read many times.
    if (overflows || packed > bytes_.size()) fail("its entries are larger than it is");
    if (unpacked > room() || (entry.method != 0 && entry.size > kLargestUnpacked)) {
      fail(fmt::format("entry {} unpacks to more than {} times the size of the file",
                       quote_text(entry.name), kRoomPerByte));
    }
  }
}

void ZipArchive::fail(std::string_view why) const {
  throw ExportError(Diagnostic{
      .code = Code::bad_file,
      .what = fmt::format("{} is not a whole .pt2 archive: {}", name_, why),
      .where = {},
      .module_path = {},
      .notes = {},
      .ways_out = {"copy or download the file again", "save it again with torch.export.save"}});
}

std::span<const std::byte> ZipArchive::part(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) fail("it ends too early");
  return bytes_.subspan(offset, size);
}

std::uint64_t ZipArchive::number(std::uint64_t offset, int width) const {
  const auto bytes = part(offset, static_cast<std::uint64_t>(width));
  std::uint64_t value = 0;
  for (int i = width; i-- > 0;)
    value = value << 8 | static_cast<std::uint64_t>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

ZipArchive::Directory ZipArchive::find_directory() const {
  if (bytes_.size() < kEndRecord) fail("it is too short");
  const std::uint64_t last = bytes_.size() - kEndRecord;
  const std::uint64_t first = last > kMax16 ? last - kMax16 : 0;
  std::uint64_t end = last + 1;
  while (end-- > first && number(end, 4) != 0x06054b50) {
    if (end == first) fail("it has no directory at its end");
  }
  Directory directory{number(end + 16, 4), number(end + 12, 4), number(end + 10, 2)};
  const bool wide =
      directory.offset == kMax32 || directory.size == kMax32 || directory.count == kMax16;
  if (wide && end >= 20 && number(end - 20, 4) == 0x07064b50) {
    const std::uint64_t record = number(end - 12, 8);
    if (record > bytes_.size() || number(record, 4) != 0x06064b50)
      fail("its zip64 directory is damaged");
    directory = {number(record + 48, 8), number(record + 40, 8), number(record + 32, 8)};
  }
  return directory;
}

void ZipArchive::read_directory(const Directory& directory) {
  part(directory.offset, directory.size);
  if (directory.count > directory.size / kDirectoryEntry)
    fail("its directory names more entries than it can hold");
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (number(at, 4) != 0x02014b50) fail("its directory is damaged");
    Entry entry;
    const std::uint64_t flags = number(at + 8, 2);
    entry.method = static_cast<std::uint16_t>(number(at + 10, 2));
    entry.crc = static_cast<std::uint32_t>(number(at + 16, 4));
    entry.packed = number(at + 20, 4);
    entry.size = number(at + 24, 4);
    entry.header = number(at + 42, 4);
    const std::uint64_t name_size = number(at + 28, 2);
    const std::uint64_t extra_size = number(at + 30, 2);
    const auto name = part(at + kDirectoryEntry, name_size);
    entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    read_wide_fields(entry, part(at + kDirectoryEntry + name_size, extra_size));
    if ((flags & 1) != 0) fail(fmt::format("entry {} is encrypted", quote_text(entry.name)));
    if (entry.method != 0 && entry.method != 8) {
      fail(fmt::format("entry {} is compressed in an unknown way", quote_text(entry.name)));
    }
    if (entry.method == 0 && entry.packed != entry.size)
      fail(fmt::format("entry {} has two sizes", quote_text(entry.name)));
    if (!by_name_.emplace(entry.name, entries_.size()).second) {
      fail(fmt::format("entry {} is there twice", quote_text(entry.name)));
    }
    entries_.push_back(std::move(entry));
    at += kDirectoryEntry + name_size + extra_size + number(at + 32, 2);
  }
}

void ZipArchive::read_wide_fields(Entry& entry, std::span<const std::byte> extra) const {
  const std::uint64_t begin = static_cast<std::uint64_t>(extra.data() - bytes_.data());
  for (std::uint64_t at = 0; at + 4 <= extra.size();) {
    const std::uint64_t id = number(begin + at, 2);
    const std::uint64_t size = number(begin + at + 2, 2);
    at += 4;
    if (size > extra.size() - at) break;
    if (id == 1) {
      std::uint64_t field = begin + at;
      const std::uint64_t end = field + size;
      for (std::uint64_t* value : {&entry.size, &entry.packed, &entry.header}) {
        if (*value != kMax32) continue;
        if (end - field < 8) fail("a zip64 entry is damaged");
        *value = number(field, 8);
        field += 8;
      }
    }
    at += size;
  }
}

const ZipArchive::Entry* ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

const ZipArchive::Entry& ZipArchive::at(std::string_view name) const {
  const Entry* entry = find(name);
  if (entry == nullptr) fail(fmt::format("it has no entry {}", quote_text(name)));
  return *entry;
}

std::span<const std::byte> ZipArchive::data(const Entry& entry) const {
  if (entry.header > bytes_.size() || number(entry.header, 4) != 0x04034b50) {
    fail(fmt::format("entry {} is not where the directory says", quote_text(entry.name)));
  }
  const std::uint64_t name_size = number(entry.header + 26, 2);
  const std::uint64_t extra_size = number(entry.header + 28, 2);
  return part(entry.header + kLocalHeader + name_size + extra_size, entry.packed);
}

std::vector<std::byte> ZipArchive::unpack(const Entry& entry) const {
  const auto packed = data(entry);
  if (packed.size() > kLargestUnpacked)
    fail(fmt::format("entry {} is too large to be compressed", quote_text(entry.name)));
  std::vector<std::byte> result(entry.size);
  z_stream stream{};
  stream.next_in = const_cast<Bytef*>(as_bytef(packed));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw InternalError("zlib does not start");
  const int outcome = inflate(&stream, Z_FINISH);
  const bool whole = outcome == Z_STREAM_END && stream.total_out == entry.size;
  inflateEnd(&stream);
  if (!whole) fail(fmt::format("entry {} does not unpack", quote_text(entry.name)));
  return result;
}

ZipArchive::Contents ZipArchive::read(const Entry& entry) const {
  Contents contents;
  if (entry.method == 0) {
    contents.bytes = data(entry);
  } else {
    contents.owned = std::make_shared<const std::vector<std::byte>>(unpack(entry));
    contents.bytes = *contents.owned;
  }
  if (checksum_of_all(contents.bytes) != entry.crc)
    fail(fmt::format("entry {} has a wrong check sum", quote_text(entry.name)));
  return contents;
}

std::string ZipArchive::text(const Entry& entry) const {
  const Contents contents = read(entry);
  return {reinterpret_cast<const char*>(contents.bytes.data()), contents.bytes.size()};
}

}  // namespace modelport::pt2
