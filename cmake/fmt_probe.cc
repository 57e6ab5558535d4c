// Links only when cmake/fmt.cc holds all that this release of fmt wants.
#include <fmt/format.h>

#include <string>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const std::string text = fmt::format("{:>8} {:.3f} {:g} {:x} {}", words[0], 1.0 / argc,
                                       0.5f * argc, argc, fmt::join(words, ", "));
  return text.empty() ? 1 : 0;
}
