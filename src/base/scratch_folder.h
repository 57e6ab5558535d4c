// A folder for one test, removed when the test ends.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace modelport {

struct ScratchFolder {
  std::filesystem::path path;

  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "modelport-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }

  std::filesystem::path write(const std::string& name, std::string_view text) const {
    std::ofstream file(path / name, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    return path / name;
  }
};

}  // namespace modelport
