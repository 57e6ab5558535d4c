// How one weight is to be quantized, and the tensors that come of it: known before a byte is read,
// so that a writer can lay out its file first.
#pragma once

#include <cstdint>
#include <optional>

#include "base/dtype.h"
#include "weights/quantize/layout.h"
#include "weights/safetensors.h"
#include "weights/store.h"

namespace modelport::weights {

enum class ScaleChoice : std::uint8_t {
  range,   // from the largest weight of a group (torchao's default), or from its range
  search,  // the least squared error over many scales; never worse than `range`
};

struct Scheme {
  QuantizedLayout layout = QuantizedLayout::torchao_int8;
  int bits = 4;
  std::int64_t group = 0;       // columns that share a scale; 0: the whole row
  bool zero_points = false;     // one a group; without them zero is the middle of the codes
  std::optional<Dtype> scales;  // the layout's own unless given
  ScaleChoice choice = ScaleChoice::search;
};

/// How the codes lie in bytes, if the layout has codes of so many bits.
constexpr std::optional<Packing> packing(const Scheme& scheme) {
  if (scheme.bits == 4) return facts(scheme.layout).four_bits;
  return scheme.bits == 8 ? facts(scheme.layout).eight_bits : std::nullopt;
}

struct TensorForm {
  Dtype dtype = Dtype::u8;
  Shape shape;
  std::uint64_t byte_count() const;
};

/// What a quantized weight is made of. Rows are all axes but the last one.
struct QuantizedForm {
  TensorForm codes;
  TensorForm scales;
  std::optional<TensorForm> zero_points;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t group = 0;           // columns that share a scale, the whole row included
  std::int64_t groups_per_row = 0;  // the last one may be shorter
};

/// Throws ExportError (Code::bad_input) that names the weight, all that is wrong, and what would
/// do.
QuantizedForm quantized_form(const Weight& weight, const Scheme& scheme);

}  // namespace modelport::weights
