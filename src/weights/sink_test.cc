#include "weights/sink.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "base/scratch_folder.h"

namespace modelport::weights {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::ptrdiff_t count_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

bool has_nameless_files(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_WRONLY, 0666);
  if (file >= 0) ::close(file);
  return file >= 0;
}

TEST_CASE("a file takes its place on commit, also where there was one") {
  const ScratchFolder folder;
  const fs::path path = folder.write("file", "old");
  AtomicFile file(path);
  file.write("new");
  CHECK(read(path) == "old");
  file.finish();
  CHECK(read(path) == "old");
  file.commit();
  CHECK(read(path) == "new");
  CHECK(count_in(folder.path) == 1);
}

TEST_CASE("a file that is not committed was never there") {
  const ScratchFolder folder;
  {
    AtomicFile file(folder.path / "file");
    file.write("new");
    file.finish();
  }
  CHECK(count_in(folder.path) == 0);
}

TEST_CASE("a process that is killed while it writes leaves nothing") {
  const ScratchFolder folder;
  if (!has_nameless_files(folder.path)) {
    MESSAGE("this file system has no nameless files");
    return;
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(folder.path / "file");
    file.write("half of it");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(count_in(folder.path) == 0);
}

}  // namespace
}  // namespace modelport::weights
