// The safetensors format: where each tensor lies in a file. Reading it touches the header only,
// never the weights behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace modelport::weights {

/// The format's own bound; a longer header is a file of another kind.
inline constexpr std::uint64_t kLongestHeader = 100'000'000;

/// What a checkpoint's file is called, and the list of its shards where it has several.
inline constexpr std::string_view kSingleFile = "model.safetensors";
inline constexpr std::string_view kIndexFile = "model.safetensors.index.json";

using Shape = std::vector<std::int64_t>;

struct TensorEntry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::uint64_t offset = 0;  // from the start of the file
  std::uint64_t bytes = 0;
  bool operator==(const TensorEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes in the file
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;
};

/// `file` is the whole file; `name` is what messages call it. Throws ExportError (Code::bad_file)
/// with every problem of the header.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view name);

/// "F32" and its kind; nothing for a dtype that the format lacks (c128).
std::optional<std::string_view> safetensors_name(Dtype dtype);
std::optional<Dtype> parse_safetensors_dtype(std::string_view name);

/// Bytes of a dense tensor; nothing when that overflows or a size is negative.
std::optional<std::uint64_t> dense_bytes(Dtype dtype, std::span<const std::int64_t> shape);

}  // namespace modelport::weights
