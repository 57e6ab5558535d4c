// Short-time Fourier transforms: a convolution with windowed waves, and the transposed one back.
#include <cmath>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/terms.h"

namespace modelport::ops::parts {
namespace {

struct Frames {
  std::int64_t size = 0, hop = 0, bins = 0;
  Dtype dtype;
  Value window;  // [size]
};

Frames frames_of(Emitter& e, bool onesided) {
  Frames found;
  found.dtype = to_real(e.result().dtype);
  found.size = known(e, e.call().integer("n_fft"), "frames of a size that is not fixed");
  found.hop = e.has("hop_length") ? e.call().number("hop_length") : found.size / 4;
  found.bins = onesided ? found.size / 2 + 1 : found.size;
  const std::int64_t width = e.has("win_length") ? e.call().number("win_length") : found.size;
  const Value window = e.has("window") ? cast(e, e.tensor("window"), found.dtype)
                                       : filled(e, {Int(width)}, 1, found.dtype);
  // A short window stands in the middle of the frame.
  const std::int64_t before = (found.size - width) / 2;
  found.window = padded(e, window, {before, found.size - width - before});
  return found;
}

}  // namespace

Value stft(Emitter& e) {
  Value x = e.tensor("self");
  if (is_complex(e.dtype(x)) || (e.has("window") && is_complex(e.call().dtype_of("window"))))
    e.refuse("a short-time transform of complex numbers");
  const Frames f = frames_of(e, !e.has("onesided") || e.call().flag("onesided"));
  const bool alone = e.rank(x) == 1;
  x = cast(e, x, f.dtype);
  x = alone ? with_axis_at(e, with_axis_at(e, x, 0), 0) : with_axis_at(e, x, 1);
  if (has_parameter(e, "center") && e.call().flag("center")) {
    const Int border = f.size / 2;
    const std::string mode(e.call().string("pad_mode"));
    x = e.call("aten.pad", {x, {border, border}, mode.c_str()});
  }
  const Waves w = waves(e, f.size, f.bins, f.size, f.dtype);
  Value kernel = e.call("aten.cat", {Values{w.cosines, e.call("aten.neg", {w.sines})}, 0});
  kernel = mul(e, kernel, f.window);
  if (e.call().flag("normalized"))
    kernel = scaled(e, kernel, 1 / std::sqrt(static_cast<double>(f.size)));
  const Value bins = e.call("aten.conv1d", {x, with_axis_at(e, kernel, 1), std::nullopt, {f.hop}});
  const Int batch = e.shape(bins)[0], count = e.shape(bins)[2];
  Value pairs = permuted(e, viewed(e, bins, {batch, 2, f.bins, count}), {0, 2, 3, 1});
  if (alone) pairs = selected(e, pairs, 0, 0);
  return is_complex(e.result().dtype) ? e.from_pairs(pairs) : pairs;
}

Value istft(Emitter& e) {
  if (e.call().flag("return_complex")) e.refuse("a complex signal");
  const Frames f = frames_of(e, true);  // of a whole spectrum torch takes the first half
  const Value whole = e.tensor("self");
  const bool alone = e.rank(whole) == 2;
  const std::int64_t axis = alone ? 0 : 1;
  const auto half = [&](std::string_view part) {
    return sliced(e, e.call(part, {whole}), axis, 0, f.bins);
  };
  Value bins = e.call("aten.cat", {Values{half("aten.real"), half("aten.imag")}, axis});
  if (alone) bins = with_axis_at(e, bins, 0);
  // Half a spectrum: what is left out is the conjugate of what is there.
  const double root = std::sqrt(static_cast<double>(f.size));
  const Value weights = scaled(e, with_axis_at(e, half_weights(e, f.size, f.dtype), 1),
                               1 / (e.call().flag("normalized") ? root : root * root));
  const Waves w = waves(e, f.size, f.bins, f.size, f.dtype);
  const Value back = e.call("aten.neg", {mul(e, w.sines, weights)});
  const Value kernel =
      mul(e, e.call("aten.cat", {Values{mul(e, w.cosines, weights), back}, 0}), f.window);
  const auto overlapped = [&](Value frames, Value rows) {
    return e.call("aten.conv_transpose1d", {frames, rows, std::nullopt, {f.hop}});
  };
  const Value sum = overlapped(bins, with_axis_at(e, kernel, 1));
  const Value square = viewed(e, mul(e, f.window, f.window), {1, 1, f.size});
  const Value envelope = overlapped(filled(e, {1, 1, e.shape(bins)[2]}, 1, f.dtype), square);
  const Int start = e.call().flag("center") ? f.size / 2 : 0;
  const auto part = [&](Value v) { return sliced(e, v, 2, start, e.shape(v)[2]); };
  const Value y = selected(e, div(e, part(sum), part(envelope)), 1, 0);
  return fitted(e, alone ? selected(e, y, 0, 0) : y, alone ? 0 : 1, e.result().shape.back());
}

}  // namespace modelport::ops::parts
