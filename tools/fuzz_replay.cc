// Drives a fuzz target without libFuzzer: every file of a corpus folder, then a fixed sequence of
// mutations of them. The sequence depends on nothing but the corpus, so a failure in the test run
// happens again on every machine.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// Weak: present only when the target is built with a sanitizer.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Bytes = std::vector<std::uint8_t>;
using Random =
    std::mt19937_64;  // the standard fixes its sequence, unlike that of the distributions

constexpr int kDefaultMutations = 4000;
constexpr std::size_t kLongestInput = std::size_t{1} << 16;

const Bytes* g_current = nullptr;

/// Saves the input at hand, so that a crash can be replayed: fuzz_x <file>.
void save_current_input() {
  const char* path = std::getenv("MODELPORT_FUZZ_CRASH");
  if (path == nullptr) path = "fuzz-crash.bin";
  if (g_current == nullptr) return;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(g_current->data()),
             static_cast<std::streamsize>(g_current->size()));
  std::fprintf(stderr, "the input (%zu bytes) was saved as %s\n", g_current->size(), path);
}

void run_one(const Bytes& input) {
  // A copy of exactly this size: a read past the end is then seen by AddressSanitizer.
  const Bytes exact(input.begin(), input.end());
  g_current = &exact;
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  g_current = nullptr;
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<Bytes> read_corpus(const std::filesystem::path& where) {
  if (std::filesystem::is_regular_file(where)) return {read_file(where)};
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(where)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Bytes> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path));
  return corpus;
}

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

/// Readers break on lengths and offsets: write one that is small, huge or just past a boundary.
void overwrite_integer(Bytes& bytes, Random& random) {
  constexpr std::uint64_t kEdges[] = {0,          1,         0x7f,           0x80,
                                      0xff,       0xffff,    0x7fffffff,     0x80000000,
                                      0xffffffff, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
  const std::uint64_t value = kEdges[below(random, std::size(kEdges))];
  const std::size_t width = std::size_t{1} << below(random, 4);
  const std::size_t at = below(random, bytes.size());
  for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// Text readers break on numbers: replace one digit by a long run of them.
void grow_digit(Bytes& bytes, Random& random) {
  const std::size_t from = below(random, bytes.size());
  const auto digit = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                                  [](std::uint8_t c) { return c >= '0' && c <= '9'; });
  if (digit != bytes.end()) bytes.insert(digit, 1 + below(random, 24), '9');
}

void splice(Bytes& bytes, const Bytes& other, Random& random) {
  const std::size_t from = below(random, other.size());
  const std::size_t count = below(random, std::min<std::size_t>(other.size() - from, 64) + 1);
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(random, bytes.size() + 1));
  const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
  bytes.insert(at, begin, begin + static_cast<std::ptrdiff_t>(count));
}

void erase_some(Bytes& bytes, Random& random) {
  const std::size_t from = below(random, bytes.size());
  const std::size_t count = 1 + below(random, std::min<std::size_t>(bytes.size() - from, 32));
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
  bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
}

void mutate_once(Bytes& bytes, const Bytes& other, Random& random) {
  if (bytes.empty()) {
    bytes.push_back(static_cast<std::uint8_t>(random()));
    return;
  }
  switch (below(random, 7)) {
    case 0:
      bytes[below(random, bytes.size())] ^= static_cast<std::uint8_t>(1U << below(random, 8));
      break;
    case 1:
      bytes[below(random, bytes.size())] = static_cast<std::uint8_t>(random());
      break;
    case 2:
      bytes.resize(below(random, bytes.size()));
      break;
    case 3:
      erase_some(bytes, random);
      break;
    case 4:
      overwrite_integer(bytes, random);
      break;
    case 5:
      grow_digit(bytes, random);
      break;
    case 6:
      splice(bytes, other, random);
      break;
  }
}

Bytes mutated(const std::vector<Bytes>& corpus, Random& random) {
  Bytes bytes = corpus[below(random, corpus.size())];
  const std::size_t rounds = 1 + below(random, 4);
  for (std::size_t i = 0; i < rounds; ++i) {
    mutate_once(bytes, corpus[below(random, corpus.size())], random);
  }
  if (bytes.size() > kLongestInput) bytes.resize(kLongestInput);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || !std::filesystem::exists(argv[1])) {
    std::fprintf(stderr, "usage: %s <corpus folder or one file> [mutations]\n", argv[0]);
    return 2;
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_current_input);
  // A target aborts when an answer is wrong, and an exception nobody caught ends in abort too.
  std::signal(SIGABRT, [](int) {
    save_current_input();
    std::_Exit(134);
  });

  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no file to start from\n", argv[1]);
    return 2;
  }
  for (const Bytes& input : corpus) run_one(input);
  const bool one_file = std::filesystem::is_regular_file(argv[1]);
  const int mutations = argc == 3 ? std::atoi(argv[2]) : one_file ? 0 : kDefaultMutations;
  Random random(20250701);
  for (int i = 0; i < mutations; ++i) run_one(mutated(corpus, random));
  std::printf("%zu files and %d mutations of them: no crash\n", corpus.size(), mutations);
  return 0;
}
