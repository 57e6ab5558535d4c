// ONNX cells of Fourier transforms, and of complex numbers taken apart and put together.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

/// The cosines and sines of 2 pi j k / n, in rows j and columns k.
struct Waves {
  Value cosines, sines;  // [rows, columns]
};
Waves waves(Lower& l, const Int& n, const Int& rows, const Int& columns, Dtype dtype);
/// Cut, or filled up with zeros at the end, to this size.
Value fitted(Lower& l, Value x, std::int64_t axis, const Int& size);

Values fft_of_one(Lower& l);   // n, dim
Values fft_of_many(Lower& l);  // s, dim
Values fft_plain(Lower& l);    // _fft_c2c, _fft_r2c, _fft_c2r
Values fftshift(Lower& l);
Values stft(Lower& l);   // stft.cc
Values istft(Lower& l);  // stft.cc

Values conj(Lower& l);
Values unchanged(Lower& l);
Values real(Lower& l);
Values imag(Lower& l);
Values angle(Lower& l);
Values complex(Lower& l);
Values polar(Lower& l);

}  // namespace modelport::ops::onnx
