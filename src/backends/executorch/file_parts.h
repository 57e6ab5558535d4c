// The parts of a .pte file, and limits on what is read of one that was made to take long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace modelport::executorch {

[[noreturn]] void refuse_file(const std::string& name, std::string why);

/// Nothing that is honest refers to the same bytes again and again, so that what is read of a file
/// is no more than a few times its length.
class ReadingBudget {
 public:
  ReadingBudget(std::string name, std::size_t bytes);
  void spend(std::uint64_t amount);
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::uint64_t left_;
};

struct FileParts {
  std::span<const std::byte> tables;
  std::uint64_t segment_bytes = 0;  // all of them together
  std::span<const std::byte> segments = {};
};
/// Reads the header and checks that the file is as long as it says.
FileParts file_parts(std::span<const std::byte> bytes, const std::string& name);

}  // namespace modelport::executorch
