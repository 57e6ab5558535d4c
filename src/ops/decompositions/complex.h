// Complex numbers as pairs of reals along a last axis of 2, and Fourier transforms, in other rows.
#pragma once

#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

// The row's own call on pairs: of rows that move whole numbers, or are linear in them.
Values on_pairs(emit::Emitter& e);
/// In the shape of the result.
Value pairs_in_shape(emit::Emitter& e);
Value pairs_expanded(emit::Emitter& e);
Value pairs_permuted(emit::Emitter& e);
Value pairs_sum(emit::Emitter& e);  // add, sub
/// Of products: the row's own call on the parts.
Value pairs_product(emit::Emitter& e);
Value pairs_quotient(emit::Emitter& e);
Value pairs_choice(emit::Emitter& e);  // where
Value pairs_cast(emit::Emitter& e);
Value pairs_magnitude(emit::Emitter& e);
Value pairs_conjugate(emit::Emitter& e);
Value pairs_as_they_are(emit::Emitter& e);

// Numbers put together and taken apart.
Value complex(emit::Emitter& e);
Value polar(emit::Emitter& e);
Value real_part(emit::Emitter& e);
Value imaginary_part(emit::Emitter& e);
Value angle(emit::Emitter& e);
Value view_as_complex(emit::Emitter& e);
Value view_as_real(emit::Emitter& e);

// Fourier transforms.
Value fft_of_one(emit::Emitter& e);   // n, dim
Value fft_of_many(emit::Emitter& e);  // s, dim
Value fft_plain(emit::Emitter& e);    // _fft_c2c, _fft_r2c, _fft_c2r
Value stft(emit::Emitter& e);
Value istft(emit::Emitter& e);

/// The cosines and sines of 2 pi j k / n, in rows j and columns k.
struct Waves {
  Value cosines, sines;  // [rows, columns]
};
Waves waves(emit::Emitter& e, const Int& n, const Int& rows, const Int& columns, Dtype dtype);
/// Cut, or filled up with zeros at the end, to this size.
Value fitted(emit::Emitter& e, Value x, std::int64_t axis, const Int& size);
/// How often each entry of half a spectrum counts in a sum over the whole one: [n / 2 + 1]
Value half_weights(emit::Emitter& e, const Int& n, Dtype dtype);

}  // namespace modelport::ops::parts
