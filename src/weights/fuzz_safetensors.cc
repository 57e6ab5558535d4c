// Fuzz target: any bytes give a header or an ExportError, and a header that was accepted describes
// tensors that lie inside the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace modelport;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    std::uint64_t end = 0;
    const weights::SafetensorsHeader header = weights::parse_safetensors(file, "fuzz");
    for (const weights::TensorEntry& tensor : header.tensors) {
      if (tensor.offset < end || tensor.offset < header.data_begin) std::abort();
      if (tensor.bytes > size || tensor.offset > size - tensor.bytes) std::abort();
      if (weights::dense_bytes(tensor.dtype, tensor.shape) != tensor.bytes) std::abort();
      end = tensor.offset + tensor.bytes;
    }
  } catch (const ExportError&) {
  }
  try {
    (void)weights::parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const ExportError&) {
  }
  return 0;
}
