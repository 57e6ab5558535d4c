// The weights of one model by name, wherever their bytes are: in a mapped checkpoint, in memory
// that somebody else owns, or in memory of ours. Writers stream from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

namespace modelport::weights {

struct FoundFits;

/// The bytes of a weight, and what holds them while they are in use.
struct Contents {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep_alive;
};

struct Weight {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // dense, row-major, little-endian; empty where `read` is set

  /// The file that holds the bytes, if one does: a writer may point into it instead of copying.
  std::shared_ptr<const MappedFile> file;
  std::uint64_t file_offset = 0;
  /// Whatever owns the bytes otherwise.
  std::shared_ptr<const void> keep_alive;
  /// Makes the bytes each time they are asked for: they need memory only while they are written.
  std::function<Contents()> read;
  /// What is known already of its scales in few bits, or null.
  std::shared_ptr<const FoundFits> fits;

  std::uint64_t byte_count() const;
  /// The bytes, wherever they come from; of another length than dtype and shape say: InternalError.
  Contents contents() const;
};

class WeightStore {
 public:
  WeightStore() = default;
  WeightStore(WeightStore&&) = default;
  WeightStore& operator=(WeightStore&&) = default;
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  // A name that is taken, or bytes that do not fit dtype and shape: InternalError.
  const Weight& add_mapped(std::string name, const CheckpointTensor& tensor);
  const Weight& add_borrowed(Weight weight);  // `keep_alive` may be null for static data
  const Weight& add_owned(std::string name, Dtype dtype, Shape shape, std::vector<std::byte> bytes);
  /// A tied weight: `alias` means the same bytes as `name`, which may be an alias itself.
  const Weight& add_alias(std::string alias, std::string_view name);

  /// Under its own name or an alias; the weight's `name` is its own. Valid as long as the store.
  const Weight* find(std::string_view name) const;
  /// Throws ExportError (Code::missing_weight).
  const Weight& at(std::string_view name) const;

  /// Each weight once, in the order of its addition; a deque, so that references stay valid.
  const std::deque<Weight>& weights() const { return weights_; }
  /// {alias, name of its weight}, in the order of addition.
  const std::vector<std::pair<std::string, std::string>>& aliases() const { return aliases_; }

 private:
  void claim(const std::string& name, std::size_t index);

  std::deque<Weight> weights_;
  std::vector<std::pair<std::string, std::string>> aliases_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace modelport::weights
