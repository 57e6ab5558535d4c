#include "backends/executorch/file_parts.h"

#include <fmt/format.h>

#include <cstring>

#include "backends/executorch/layout.h"
#include "base/error.h"

namespace modelport::executorch {
namespace {

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number |= static_cast<Number>(std::to_integer<Number>(bytes[at + i]) << (8 * i));
  return number;
}

bool has_text(std::span<const std::byte> bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

}  // namespace

void refuse_file(const std::string& name, std::string why) {
  throw ExportError({.code = Code::bad_file,
                     .what = fmt::format("{}: {}", name, why),
                     .ways_out = {"export it again: modelport export executorch MODEL OUT"}});
}

ReadingBudget::ReadingBudget(std::string name, std::size_t bytes)
    : name_(std::move(name)), left_(std::uint64_t{8} * bytes + 65536) {}

void ReadingBudget::spend(std::uint64_t amount) {
  if (amount > left_) refuse_file(name_, "its tables refer to the same bytes over and over");
  left_ -= amount;
}

FileParts file_parts(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < 8 || !has_text(bytes, 4, "ET12"))
    refuse_file(name, "this is no ExecuTorch program (no ET12 at its beginning)");
  FileParts parts{.tables = bytes};
  if (has_text(bytes, 8, "eh00")) {
    if (bytes.size() < 8 + kHeaderBytes) refuse_file(name, "it ends in its header");
    const auto length = number_at<std::uint32_t>(bytes, 12);
    const auto tables = number_at<std::uint64_t>(bytes, 16);
    const auto base = number_at<std::uint64_t>(bytes, 24);
    if (length < 24 || tables < 8 || tables > bytes.size() || base > bytes.size())
      refuse_file(name, "its header does not fit its length: it was cut off or changed");
    parts.tables = bytes.first(tables);
    // Older headers do not say how long the segments are.
    parts.segment_bytes = base == 0 ? 0 : bytes.size() - base;
    if (length >= kHeaderBytes) {
      const auto said = number_at<std::uint64_t>(bytes, 32);
      if (said > parts.segment_bytes) refuse_file(name, "it was cut off: segments are missing");
      parts.segment_bytes = said;
    }
    parts.segments = bytes.subspan(base == 0 ? bytes.size() : base).first(parts.segment_bytes);
  }
  if (parts.tables.size() >= (std::uint64_t{1} << 31)) refuse_file(name, "its tables are too long");
  return parts;
}

}  // namespace modelport::executorch
