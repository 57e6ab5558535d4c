#include "backends/executorch/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "backends/executorch/layout.h"
#include "backends/executorch/value_table.h"
#include "base/error.h"

namespace modelport::executorch {
namespace {

/// Two numbers that follow from all bytes; tensors that differ have the same ones with a
/// probability of 2^-128.
std::string digest_of(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 2> sums{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    sums[0] = std::rotl(sums[0] ^ word, 29) * 0xff51afd7ed558ccd;
    sums[1] = std::rotl(sums[1] + word, 37) * 0xc4ceb9fe1a85ec53 + at;
  }
  return fmt::format("{:016x}{:016x}", sums[0], sums[1]);
}

bool is_zero(const weights::Weight& weight) {
  const weights::Contents held = weight.contents();
  return std::ranges::all_of(held.bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Blob zeros(std::uint64_t bytes) {
  return {bytes, [bytes](weights::Sink& sink) { write_zeros(sink, bytes); }};
}

}  // namespace

/// What two tensors have in common if they are the same: the memory, or the contents, where those
/// are quickly compared.
std::string ProgramData::identity_of(const Source& source) const {
  constexpr std::uint64_t kCompared = std::uint64_t{1} << 16;
  const weights::Weight& weight = *source.weight;
  std::string key = fmt::format("{} {} {} ", name(source.dtype), name(weight.dtype),
                                fmt::join(source.shape, ","));
  if (weight.byte_count() <= kCompared) {
    const weights::Contents held = weight.contents();
    key.append(reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size());
  } else if (weight.file) {
    key += fmt::format("in {} {}", weight.file->path().string(), weight.file_offset);
  } else if (options_.compare_all) {
    key += digest_of(weight.contents().bytes);
  } else {
    key += fmt::format("weight {}", static_cast<const void*>(&weight));
  }
  return key;
}

Blob ProgramData::blob_of_weight(const Source& source) const {
  const weights::Weight* weight = source.weight;
  return {byte_count(source.dtype, source.shape),
          [weight, dtype = source.dtype, losses = &losses_](weights::Sink& sink) {
            const weights::ConversionCounts counts = weights::stream(*weight, dtype, sink);
            if (counts == weights::ConversionCounts{}) return;
            losses->push_back({weight->name, weight->dtype, dtype, counts});
          }};
}

std::size_t ProgramData::add_constant(const std::string& identity, ConstantEntry entry) {
  const auto [found, added] = by_identity_.try_emplace(identity, constants_.size());
  if (!added) return found->second;
  // Two methods may have different weights under one name.
  const std::size_t same = keys_[entry.key]++;
  if (same != 0) entry.key += fmt::format("#{}", same + 1);
  constants_.push_back(std::move(entry));
  return constants_.size() - 1;
}

std::size_t ProgramData::constant(const Source& source) {
  return add_constant(identity_of(source),
                      {source.name, source.dtype, source.shape, blob_of_weight(source)});
}

std::size_t ProgramData::constant(Dtype dtype, std::vector<std::int64_t> shape, std::string bytes) {
  const std::string identity =
      fmt::format("{} {} {} ", name(dtype), name(dtype), fmt::join(shape, ",")) + bytes;
  return add_constant(identity, {"literal", dtype, std::move(shape), blob_of(std::move(bytes))});
}

namespace {

std::string text_of(const weights::Scheme& scheme) {
  return fmt::format("{} {} bits {}", name(scheme.layout), scheme.bits, scheme.group);
}

}  // namespace

ProgramData::Quantized ProgramData::constants(const Source& source, const weights::Scheme& scheme) {
  Quantized made{.form = weights::quantized_form(*source.weight, scheme)};
  auto [codes, scales] = quantized_blobs(*source.weight, scheme, made.form);
  const std::string identity = identity_of(source) + text_of(scheme);
  made.codes = add_constant(identity + " codes", {source.name + ".codes", made.form.codes.dtype,
                                                  made.form.codes.shape, std::move(codes)});
  made.scales = add_constant(identity + " scales", {source.name + ".scales", made.form.scales.dtype,
                                                    made.form.scales.shape, std::move(scales)});
  return made;
}

std::size_t ProgramData::add_delegate(Delegate delegate) {
  delegates_.push_back(std::move(delegate));
  return delegates_.size() - 1;
}

void ProgramData::add_named(NamedBlob named) {
  if (named_keys_[named.key]++ != 0)
    throw InternalError(fmt::format("two named blobs have the key {}", named.key));
  named_.push_back(std::move(named));
}

std::size_t ProgramData::add_named(const std::string& identity, NamedBlob named) {
  const auto [found, added] = named_by_identity_.try_emplace(identity, named_.size());
  if (!added) return found->second;
  const std::size_t same = named_keys_[named.key]++;
  if (same != 0) named.key += fmt::format("#{}", same + 1);
  named_.push_back(std::move(named));
  return named_.size() - 1;
}

std::optional<std::size_t> ProgramData::find_constant(const NamedBlob& named) const {
  const auto found = by_identity_.find(named.identity);
  if (named.identity.empty() || found == by_identity_.end()) return std::nullopt;
  return found->second;
}

std::size_t ProgramData::named(const Source& source, const std::vector<std::size_t>& order) {
  const std::string identity = identity_of(source);
  NamedBlob named{source.name, blob_of_weight(source)};
  if (std::ranges::is_sorted(order)) {
    named.identity = identity;
  } else {
    named.blob = with_axes(std::move(named.blob), source.dtype, source.shape, order);
  }
  return add_named(fmt::format("{} axes {}", identity, fmt::join(order, ",")), std::move(named));
}

std::size_t ProgramData::named(std::string bytes) {
  const std::string identity = "literal " + bytes;
  return add_named(identity, {"literal", blob_of(std::move(bytes))});
}

std::pair<std::size_t, std::size_t> ProgramData::named(const Folded& folded,
                                                       const std::vector<std::size_t>& order) {
  std::string identity = fmt::format("folded {} {}", folded.eps, fmt::join(order, ","));
  const auto taken = [&](const std::optional<Source>& source) {
    identity += source ? " " + identity_of(*source) : " none";
    return source ? blob_of_weight(*source) : Blob{};
  };
  const NormFold fold{.filter = taken(folded.filter),
                      .bias = taken(folded.bias),
                      .mean = taken(folded.mean),
                      .variance = taken(folded.variance),
                      .scale = taken(folded.scale),
                      .shift = taken(folded.shift),
                      .eps = folded.eps};
  auto [filter, bias] = folded_blobs(fold);
  if (!std::ranges::is_sorted(order))
    filter = with_axes(std::move(filter), folded.filter.dtype, folded.filter.shape, order);
  const std::string& name = folded.filter.name;
  return {add_named(identity + " filter", {name + ".folded", std::move(filter)}),
          add_named(identity + " bias", {name + ".folded_bias", std::move(bias)})};
}

ProgramData::Quantized ProgramData::named(const Source& source, const weights::Scheme& scheme) {
  Quantized made{.form = weights::quantized_form(*source.weight, scheme)};
  auto [codes, scales] = quantized_blobs(*source.weight, scheme, made.form);
  const std::string identity = identity_of(source) + text_of(scheme);
  made.codes = add_named(identity + " codes", {source.name + ".codes", std::move(codes)});
  made.scales = add_named(identity + " scales", {source.name + ".scales", std::move(scales)});
  return made;
}

/// Caches begin as zeros, many of one size: all of them are copied from the same bytes.
std::size_t ProgramData::initial_value(const Source& source) {
  const std::uint64_t bytes = byte_count(source.dtype, source.shape);
  if (is_zero(*source.weight)) {
    if (zeros_ == SIZE_MAX) {
      zeros_ = initial_values_.size();
      initial_values_.push_back(zeros(bytes));
    } else if (initial_values_[zeros_].bytes < bytes) {
      initial_values_[zeros_] = zeros(bytes);
    }
    return zeros_;
  }
  const auto [found, added] =
      initial_by_identity_.try_emplace(identity_of(source), initial_values_.size());
  if (added) initial_values_.push_back(blob_of_weight(source));
  return found->second;
}

std::size_t ProgramData::state(const Source& source) {
  const std::string identity =
      fmt::format("{} {} {}", source.name, name(source.dtype), fmt::join(source.shape, ","));
  const auto [found, added] = states_by_name_.try_emplace(identity, states_.size());
  if (!added) return found->second;
  StateEntry entry{.name = source.name,
                   .bytes = byte_count(source.dtype, source.shape),
                   .offset = state_bytes_,
                   .initial = initial_value(source)};
  state_bytes_ = aligned(state_bytes_ + entry.bytes, kTensorAlignment);
  states_.push_back(std::move(entry));
  return states_.size() - 1;
}

}  // namespace modelport::executorch
