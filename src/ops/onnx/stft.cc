// Short-time Fourier transforms: a convolution with windowed waves, and the transposed one back.
#include <cmath>
#include <numbers>

#include "ops/onnx/convolution.h"
#include "ops/onnx/fourier.h"
#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"
#include "ops/rules/windows.h"

namespace modelport::ops::onnx {
namespace {

constexpr Dtype kWide = Dtype::f32;  // what Conv has

struct Frames {
  std::int64_t size = 0, hop = 0, bins = 0;
  Value window;  // [size]
};

Frames frames_of(Lower& l, bool onesided) {
  Frames found;
  found.size = fixed(l, {l.call().integer("n_fft")})[0];
  found.hop = l.has("hop_length") ? l.call().number("hop_length") : found.size / 4;
  found.bins = onesided ? found.size / 2 + 1 : found.size;
  const std::int64_t width = l.has("win_length") ? l.call().number("win_length") : found.size;
  Value window =
      l.has("window") ? l.in("window", kWide) : l.filled(l.number(1.0, kWide), {Int(width)});
  // A short window stands in the middle of the frame.
  const std::int64_t before = (found.size - width) / 2;
  found.window = bordered(l, window, {before}, {found.size - width - before}, l.number(0.0, kWide));
  return found;
}

Value centered(Lower& l, Value x, std::int64_t border) {
  Shape shape = l.shape(x);
  shape.back() += 2 * border;
  const std::string mode(l.call().string("pad_mode"));
  return l.emit("Pad", {x, l.ints({0, 0, border, 0, 0, border})},
                {{"mode", {mode == "replicate" ? std::string("edge") : mode}}},
                {l.dtype(x), std::move(shape)});
}

}  // namespace

Values stft(Lower& l) {
  Value x = l.in("self");
  if (is_complex(l.dtype(x)) || (l.has("window") && is_complex(l.call().dtype_of("window"))))
    l.refuse("a short-time transform of complex numbers");
  const Frames f = frames_of(l, !l.has("onesided") || l.call().flag("onesided"));
  const bool alone = l.rank(x) == 1;
  x = l.unsqueeze(l.cast(x, kWide),
                  alone ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{1});
  if (l.call().op().name == "aten.stft.center" && l.call().flag("center"))
    x = centered(l, x, f.size / 2);
  const Waves w = waves(l, f.size, f.bins, f.size, kWide);
  Value kernel = l.mul(l.concat({w.cosines, l.unary("Neg", w.sines)}, 0), f.window);
  if (l.call().flag("normalized"))
    kernel = l.mul(kernel, l.number(1 / std::sqrt(static_cast<double>(f.size)), kWide));
  const Int batch = l.shape(x)[0];
  const Int count = shape::floor_div(l.shape(x)[2] - f.size, f.hop) + 1;
  const Value bins = l.emit("Conv", {x, l.unsqueeze(kernel, {1})}, {{"strides", int_list({f.hop})}},
                            {kWide, {batch, 2 * f.bins, count}});
  Value pairs = l.transpose(l.reshape(bins, {batch, 2, f.bins, count}), {0, 2, 3, 1});
  if (alone) pairs = l.squeeze(pairs, {0});
  pairs = l.cast(pairs, to_real(l.result().dtype));
  return {is_complex(l.result().dtype) ? l.from_pairs(pairs) : pairs};
}

Values istft(Lower& l) {
  if (l.call().flag("return_complex")) l.refuse("a complex signal");
  const Frames f = frames_of(l, true);  // of a whole spectrum torch takes the first half
  const Value whole = l.in("self");
  const bool alone = l.rank(whole) == 2;
  const Value spectrum = l.slice(whole, alone ? 0 : 1, 0, f.bins);
  Value bins =
      l.cast(l.concat({l.real_part(spectrum), l.imaginary_part(spectrum)}, alone ? 0 : 1), kWide);
  if (alone) bins = l.unsqueeze(bins, {0});
  // Half a spectrum: what is left out is the conjugate of what is there.
  std::vector<double> twice(static_cast<std::size_t>(f.bins), 2);
  twice[0] = 1;
  if (f.size % 2 == 0) twice.back() = 1;
  const double root = std::sqrt(static_cast<double>(f.size));
  for (double& weight : twice) weight /= l.call().flag("normalized") ? root : root * root;
  const Value weights = l.constant(kWide, {f.bins, 1}, twice);
  const Waves w = waves(l, f.size, f.bins, f.size, kWide);
  const Value kernel = l.mul(
      l.concat({l.mul(w.cosines, weights), l.unary("Neg", l.mul(w.sines, weights))}, 0), f.window);
  const Int count = l.shape(bins)[2];
  const Int length = f.size + f.hop * (count - 1);
  const Attributes strides{{"strides", int_list({f.hop})}};
  const Value sum = l.emit("ConvTranspose", {bins, l.unsqueeze(kernel, {1})}, strides,
                           {kWide, {l.shape(bins)[0], 1, length}});
  const Value ones = l.filled(l.number(1.0, kWide), {1, 1, count});
  const Value square = l.unsqueeze(l.mul(f.window, f.window), {0, 1});
  const Value envelope = l.emit("ConvTranspose", {ones, square}, strides, {kWide, {1, 1, length}});
  const Int start = l.call().flag("center") ? f.size / 2 : 0;
  const Int& asked = l.result().shape.back();
  const auto part = [&](Value v) { return l.slice(v, 2, start, length); };
  const Value y = l.squeeze(l.div(part(sum), part(envelope)),
                            alone ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{1});
  return {l.cast(fitted(l, y, l.rank(y) - 1, asked), l.result().dtype)};
}

}  // namespace modelport::ops::onnx
