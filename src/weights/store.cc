#include "weights/store.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace modelport::weights {

namespace {

void check_length(const Weight& weight, std::size_t length) {
  if (dense_bytes(weight.dtype, weight.shape) == length) return;
  throw InternalError(fmt::format("weight {} is {}[{}] but has {} bytes", quote_text(weight.name),
                                  name(weight.dtype), fmt::join(weight.shape, ", "), length));
}

}  // namespace

std::uint64_t Weight::byte_count() const { return dense_bytes(dtype, shape).value_or(0); }

Contents Weight::contents() const {
  if (!read) return {bytes, keep_alive};
  Contents made = read();
  check_length(*this, made.bytes.size());
  return made;
}

void WeightStore::claim(const std::string& name, std::size_t index) {
  if (!by_name_.emplace(name, index).second) {
    throw InternalError(fmt::format("two weights are named {}", quote_text(name)));
  }
}

const Weight& WeightStore::add_borrowed(Weight weight) {
  if (!weight.read) check_length(weight, weight.bytes.size());
  claim(weight.name, weights_.size());
  return weights_.emplace_back(std::move(weight));
}

const Weight& WeightStore::add_mapped(std::string name, const CheckpointTensor& tensor) {
  return add_borrowed({.name = std::move(name),
                       .dtype = tensor.entry.dtype,
                       .shape = tensor.entry.shape,
                       .bytes = tensor.data(),
                       .file = tensor.file,
                       .file_offset = tensor.entry.offset,
                       .keep_alive = tensor.file});
}

const Weight& WeightStore::add_owned(std::string name, Dtype dtype, Shape shape,
                                     std::vector<std::byte> bytes) {
  const auto owned = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return add_borrowed({.name = std::move(name),
                       .dtype = dtype,
                       .shape = std::move(shape),
                       .bytes = *owned,
                       .file = nullptr,
                       .file_offset = 0,
                       .keep_alive = owned});
}

const Weight& WeightStore::add_alias(std::string alias, std::string_view name) {
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) {
    throw InternalError(
        fmt::format("alias {} of {}, which is no weight", quote_text(alias), quote_text(name)));
  }
  const std::size_t index = found->second;
  claim(alias, index);
  aliases_.emplace_back(std::move(alias), weights_[index].name);
  return weights_[index];
}

const Weight* WeightStore::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &weights_[found->second];
}

const Weight& WeightStore::at(std::string_view name) const {
  if (const Weight* weight = find(name)) return *weight;
  Diagnostic d;
  d.code = Code::missing_weight;
  d.what = fmt::format("the model needs weight {}, and no source gave it", quote_text(name));
  d.ways_out = {"check that the checkpoint belongs to this model class",
                "give values to a model on the meta device"};
  throw ExportError(std::move(d));
}

}  // namespace modelport::weights
