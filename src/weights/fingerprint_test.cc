#include "weights/fingerprint.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.h"
#include "base/scratch_folder.h"

namespace modelport::weights {
namespace {

std::string large() {
  std::string text(std::size_t{5} << 20, 'x');
  for (std::size_t i = 0; i < text.size(); i += 7) text[i] = static_cast<char>(i >> 9);
  return text;
}

/// One byte, in place, and the date as it was where that is asked for.
void change(const std::filesystem::path& file, std::size_t at, bool keep_date) {
  struct stat before{};
  ::stat(file.c_str(), &before);
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put('!');
  }
  const timespec date = keep_date ? before.st_mtim : timespec{before.st_mtim.tv_sec + 1, 0};
  const timespec times[] = {date, date};
  ::utimensat(AT_FDCWD, file.c_str(), times, 0);
}

}  // namespace

TEST_CASE("a file is unchanged until a byte of it changes, wherever that is") {
  const ScratchFolder scratch;
  const std::string text = large();
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{1} << 20, (std::size_t{3} << 20) + 12345, text.size() - 1}) {
    const auto file = scratch.write("w", text);
    const Fingerprint before = fingerprint(file);
    CHECK(is_unchanged(file, before));
    change(file, at, false);
    CHECK_FALSE(is_unchanged(file, before));
  }
}

TEST_CASE("a file that was copied is unchanged, another one under the old date is not") {
  const ScratchFolder scratch;
  const auto file = scratch.write("w", large());
  const Fingerprint before = fingerprint(file);
  std::filesystem::copy_file(file, scratch.path / "copy");
  CHECK(is_unchanged(scratch.path / "copy", before));
  change(file, 100, true);
  CHECK_FALSE(is_unchanged(file, before));
  scratch.write("w", "short");
  CHECK_FALSE(is_unchanged(file, before));
}

TEST_CASE("a fingerprint is read from its text, and nothing else is") {
  const ScratchFolder scratch;
  const Fingerprint found = fingerprint(scratch.write("w", "weights"));
  CHECK(Fingerprint::parse(found.text(), "w") == found);
  for (const char* text :
       {"", "-", "1-2-3", "1-2-3-4-5", "1-2-3-4 ", "a-b-c-d", "99999999999999999999-1-1-1"})
    CHECK_THROWS_AS(Fingerprint::parse(text, "w"), ExportError);
  CHECK_THROWS_AS(fingerprint(scratch.path / "none"), ExportError);
}

}  // namespace modelport::weights
