#include "base/mapped_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/scratch_folder.h"

namespace modelport {
namespace {

namespace fs = std::filesystem;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string error_of(const fs::path& path) {
  try {
    (void)MappedFile::open(path);
  } catch (const ExportError& error) {
    REQUIRE(error.diagnostics().size() == 1);
    CHECK(error.diagnostics()[0].code == Code::bad_file);
    CHECK(!error.diagnostics()[0].ways_out.empty());
    return error.diagnostics()[0].what;
  }
  return "no error";
}

TEST_CASE("a mapped file shows the bytes of the file") {
  const ScratchFolder folder;
  const MappedFile file = MappedFile::open(folder.write("a", "hello\n"));
  CHECK(text_of(file) == "hello\n");
  CHECK(file.path() == folder.path / "a");
}

TEST_CASE("an empty file maps to an empty span") {
  const ScratchFolder folder;
  CHECK(MappedFile::open(folder.write("empty", "")).bytes().empty());
}

TEST_CASE("a mapping outlives the file's name") {
  const ScratchFolder folder;
  const fs::path path = folder.write("a", "still here");
  const MappedFile file = MappedFile::open(path);
  fs::remove(path);
  CHECK(text_of(file) == "still here");
}

TEST_CASE("moving a mapping moves the bytes and empties the source") {
  const ScratchFolder folder;
  MappedFile first = MappedFile::open(folder.write("a", "first"));
  MappedFile second = MappedFile::open(folder.write("b", "second"));
  MappedFile moved = std::move(first);
  CHECK(text_of(moved) == "first");
  CHECK(first.bytes().empty());  // NOLINT(bugprone-use-after-move): the state is specified
  moved = std::move(second);
  CHECK(text_of(moved) == "second");
  MappedFile& same = moved;
  moved = std::move(same);
  CHECK(text_of(moved) == "second");
}

TEST_CASE("forgotten pages come back from the file when they are touched") {
  const ScratchFolder folder;
  std::string text(100'000, 'x');
  text.back() = 'y';
  const MappedFile file = MappedFile::open(folder.write("a", text));
  CHECK(text_of(file) == text);
  file.forget(file.bytes());
  file.forget(file.bytes().subspan(10, 20'000));
  file.forget(file.bytes().first(0));
  const std::vector<std::byte> foreign(10);
  file.forget(foreign);
  CHECK(text_of(file) == text);
}

TEST_CASE("each reason not to open a file is named with the path") {
  const ScratchFolder folder;
  const fs::path file = folder.write("file", "x");
  const std::string base = "cannot open " + folder.path.string();
  CHECK(error_of(folder.path / "none") == base + "/none: it does not exist");
  CHECK(error_of(folder.path) == base + ": it is a directory, not a file");
  CHECK(error_of(file / "below") == base + "/file/below: Not a directory");
  fs::create_symlink(folder.path / "loop", folder.path / "loop");
  CHECK(error_of(folder.path / "loop") == base + "/loop: Too many levels of symbolic links");
  CHECK(error_of("").starts_with("cannot open : "));
}

TEST_CASE("a named pipe is refused at once instead of waiting for a writer") {
  const ScratchFolder folder;
  const fs::path pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of(pipe) == "cannot open " + pipe.string() + ": it is not a regular file");
}

TEST_CASE("a file without read permission is refused with that reason") {
  if (::geteuid() == 0) return;  // root reads everything
  const ScratchFolder folder;
  const fs::path path = folder.write("secret", "x");
  fs::permissions(path, fs::perms::none);
  CHECK(error_of(path) == "cannot open " + path.string() + ": Permission denied");
}

}  // namespace
}  // namespace modelport
