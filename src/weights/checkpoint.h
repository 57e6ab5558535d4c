// A checkpoint on disk, as Hugging Face folders hold it: one safetensors file, or shards with an
// index. Opening reads headers; weights are read when their bytes are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "weights/safetensors.h"

namespace modelport::weights {

struct CheckpointTensor {
  TensorEntry entry;
  std::shared_ptr<const MappedFile> file;  // sharing it keeps the bytes alive
  std::span<const std::byte> data() const {
    return file->bytes().subspan(entry.offset, entry.bytes);
  }
};

class Checkpoint {
 public:
  /// A folder, a .safetensors file or a .safetensors.index.json file. Throws ExportError
  /// (Code::bad_file) with every problem of every file.
  static Checkpoint open(const std::filesystem::path& path);

  /// By file name, then by place in the file.
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  const CheckpointTensor* find(std::string_view name) const;
  /// Throws ExportError (Code::missing_weight) with the names that come closest.
  const CheckpointTensor& at(std::string_view name) const;
  std::span<const std::byte> data(std::string_view name) const { return at(name).data(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<CheckpointTensor> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace modelport::weights
