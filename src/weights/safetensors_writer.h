// Writes safetensors files: one, or several with an index. Same tensors, same bytes, and the bytes
// that the safetensors library itself would write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "weights/safetensors.h"
#include "weights/sink.h"

namespace modelport::weights {

/// A tensor to be written. `stream` puts exactly the bytes of dtype and shape into the sink; it is
/// called once, when the tensor's turn comes.
struct TensorSource {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::function<void(Sink&)> stream;
};

using Metadata = std::map<std::string, std::string>;

struct SafetensorsOptions {
  Metadata metadata = {{"format", "pt"}};  // transformers refuses files that do not say "pt"
  /// Start a new file before one passes this size; a larger tensor gets a file of its own.
  std::optional<std::uint64_t> max_shard_bytes;
};

void write_safetensors(std::span<const TensorSource> tensors, const Metadata& metadata, Sink& sink);

/// Writes model.safetensors, or model-00001-of-0000N.safetensors and model.safetensors.index.json,
/// into `folder` (made if it is missing). Files take their places only when all are whole; a
/// model.safetensors or index of the other kind that would contradict them is removed then.
/// Returns the files' names, the index last.
std::vector<std::string> save_safetensors(std::span<const TensorSource> tensors,
                                          const std::filesystem::path& folder,
                                          const SafetensorsOptions& options = {});

}  // namespace modelport::weights
