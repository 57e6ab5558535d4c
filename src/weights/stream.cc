#include "weights/stream.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/error.h"

namespace modelport::weights {
namespace {

/// What the bytes are to a reader that asks for `wanted`: complex numbers are pairs of reals to one
/// that asks for reals.
Dtype stored_as(Dtype own, Dtype wanted) {
  if (!is_complex(own) || is_complex(wanted)) return own;
  return own == Dtype::c64 ? Dtype::f32 : Dtype::f64;
}

}  // namespace

Dtype dtype_as(const Weight& weight, std::optional<Dtype> floats) {
  return floats && can_convert(weight.dtype) ? *floats : weight.dtype;
}

ConversionCounts stream(const Weight& weight, Dtype dtype, Sink& sink) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;  // a multiple of every element size
  const Contents held = weight.contents();
  const Dtype own = stored_as(weight.dtype, dtype);
  ConversionCounts counts;
  for (std::size_t begin = 0; begin < held.bytes.size(); begin += kPiece) {
    const auto piece = held.bytes.subspan(begin, std::min(kPiece, held.bytes.size() - begin));
    if (dtype == own) {
      sink.write(piece);
    } else {
      counts += convert_to(sink, own, piece, dtype);
    }
    if (weight.file) weight.file->forget(piece);
  }
  return counts;
}

std::vector<TensorSource> tensor_sources(const WeightStore& store, const StreamOptions& options) {
  if (options.floats && !can_convert(*options.floats)) {
    Diagnostic d;
    d.code = Code::bad_input;
    d.what = "weights cannot be converted to " + std::string(name(*options.floats));
    d.ways_out = {"choose f64, f32, f16 or bf16"};
    throw ExportError(std::move(d));
  }
  std::vector<TensorSource> sources;
  for (const Weight& weight : store.weights()) {
    const Dtype dtype = dtype_as(weight, options.floats);
    sources.push_back({.name = weight.name,
                       .dtype = dtype,
                       .shape = weight.shape,
                       .stream = [&weight, dtype, losses = options.losses](Sink& sink) {
                         const ConversionCounts counts = stream(weight, dtype, sink);
                         if (losses == nullptr || counts == ConversionCounts{}) return;
                         losses->push_back({weight.name, weight.dtype, dtype, counts});
                       }});
  }
  return sources;
}

}  // namespace modelport::weights
