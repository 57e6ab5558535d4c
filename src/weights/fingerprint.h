// What a file of weights was when somebody began to point into it. Models that are linked to a
// checkpoint are as good as the file is unchanged, and this tells whether it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace modelport::weights {

struct Fingerprint {
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // nanoseconds
  std::uint64_t sampled = 0;  // of the head and of pages all over the file: read in milliseconds
  std::uint64_t whole = 0;    // of all bytes

  bool operator==(const Fingerprint&) const = default;
  std::string text() const;
  /// Throws ExportError (bad_file) for text that is none; `name` is for the message.
  static Fingerprint parse(std::string_view text, const std::string& name);
};

/// Reads the whole file.
Fingerprint fingerprint(const std::filesystem::path& file);

/// Whether the file has the contents that it had. All of it is read only where it was written to or
/// copied since; else size, date and samples decide, so that loading stays quick. Contents that
/// differ beside the samples, under the old date, are taken for the same.
bool is_unchanged(const std::filesystem::path& file, const Fingerprint& before);

}  // namespace modelport::weights
