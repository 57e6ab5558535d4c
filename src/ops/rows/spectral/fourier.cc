// Fourier transforms, and complex numbers taken apart and put together.
#include "ops/onnx/fourier.h"

#include <array>

#include "ops/decompositions/complex.h"
#include "ops/decompositions/shape.h"
#include "ops/executorch/view.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

enum class Kind {
  complex,   // complex to complex, as long as before
  half_out,  // real input: half of the spectrum
  half_in,   // half of a spectrum: real output
};

/// The axes of a transform over several axes, and the sizes they are cut or padded to.
struct Transform {
  std::vector<std::int64_t> axes;
  std::vector<std::optional<Int>> sizes;
};

Transform transform_of_one(Call& call) {
  return {{axis_of(call, "dim", call.rank("self"))}, {call.optional_integer("n")}};
}

Transform transform_of_many(Call& call) {
  const std::int64_t rank = call.rank("self");
  const std::optional<std::vector<Int>> sizes = call.optional_ints("s");
  Transform found;
  if (call.has("dim")) {
    found.axes = axis_list(call, "dim", rank);
  } else {
    const auto count = sizes ? static_cast<std::int64_t>(sizes->size()) : rank;
    for (std::int64_t axis = rank - count; axis < rank; ++axis) found.axes.push_back(axis);
  }
  for (std::size_t i = 0; i < found.axes.size(); ++i) {
    const bool given = sizes && !(sizes->at(i) == Int(-1));
    found.sizes.push_back(given ? std::optional<Int>(sizes->at(i)) : std::nullopt);
  }
  return found;
}

Results transform(Call& call, const Transform& transform, Kind kind) {
  Shape result = call.shape("self");
  for (std::size_t i = 0; i < transform.axes.size(); ++i) {
    const bool halved = kind != Kind::complex && i + 1 == transform.axes.size();
    size_at(call, result, transform.axes[i]);
    Int& size = result[transform.axes[i]];
    if (halved && kind == Kind::half_in) {
      size = transform.sizes[i].value_or(2 * (size - 1));
    } else {
      size = transform.sizes[i].value_or(size);
      if (halved) size = shape::floor_div(size, 2) + 1;
    }
  }
  const Dtype complex = to_complex(call.dtype_of("self"));
  return one(kind == Kind::half_in ? to_real(complex) : complex, std::move(result));
}

Results fft(Call& call) { return transform(call, transform_of_one(call), Kind::complex); }
Results rfft(Call& call) { return transform(call, transform_of_one(call), Kind::half_out); }
Results irfft(Call& call) { return transform(call, transform_of_one(call), Kind::half_in); }
Results fftn(Call& call) { return transform(call, transform_of_many(call), Kind::complex); }
Results rfftn(Call& call) { return transform(call, transform_of_many(call), Kind::half_out); }
Results irfftn(Call& call) { return transform(call, transform_of_many(call), Kind::half_in); }

Results fft_c2c(Call& call) { return like_self(call); }

Results fft_r2c(Call& call) {
  const std::vector<std::int64_t> axes = axis_list(call, "dim", call.rank("self"));
  Shape result = call.shape("self");
  call.require(!result.empty() && !axes.empty(), "a transform needs an axis");
  if (call.flag("onesided")) {
    Int& last = result[axes.back()];
    last = shape::floor_div(last, 2) + 1;
  }
  return one(to_complex(call.dtype_of("self")), std::move(result));
}

Results fft_c2r(Call& call) {
  const std::vector<std::int64_t> axes = axis_list(call, "dim", call.rank("self"));
  call.require(!axes.empty(), "a transform needs an axis");
  return one(to_real(call.dtype_of("self")),
             with_size(call.shape("self"), axes.back(), call.integer("last_dim_size")));
}

Results stft(Call& call) {
  const Shape& shape = call.shape("self");
  const Int n_fft = call.integer("n_fft");
  const Int hop = call.optional_integer("hop_length").value_or(shape::floor_div(n_fft, 4));
  Int length = size_at(call, shape, -1);
  const bool centered = call.op().name == "aten.stft.center" && call.flag("center");
  if (centered) length += 2 * shape::floor_div(n_fft, 2);
  const bool complex_in = is_complex(call.dtype_of("self")) ||
                          (call.has("window") && is_complex(call.dtype_of("window")));
  const bool onesided = call.has("onesided") ? call.flag("onesided") : !complex_in;
  Shape result = without_axis(shape, call.rank("self") - 1);
  result.push_back(onesided ? shape::floor_div(n_fft, 2) + 1 : n_fft);
  result.push_back(shape::floor_div(length - n_fft, hop) + 1);
  const Dtype complex = to_complex(call.dtype_of("self"));
  const bool as_complex = call.has("return_complex") ? call.flag("return_complex") : complex_in;
  if (as_complex) return one(complex, std::move(result));
  return one(to_real(complex), joined(std::move(result), {2}));
}

Results istft(Call& call) {
  const Shape& shape = call.shape("self");
  const Int n_fft = call.integer("n_fft");
  const Int hop = call.optional_integer("hop_length").value_or(shape::floor_div(n_fft, 4));
  call.require(shape.size() >= 2, "a spectrum has two axes");
  const Int whole = n_fft + hop * (shape.back() - 1);
  const Int border = call.flag("center") ? shape::floor_div(n_fft, 2) : Int(0);
  const Int length = call.optional_integer("length").value_or(whole - 2 * border);
  const Dtype dtype = call.dtype_of("self");
  return one(call.flag("return_complex") ? dtype : to_real(dtype),
             joined(leading(shape, call.rank("self") - 2), {length}));
}

Results real_part(Call& call) { return one(to_real(call.dtype_of("self")), call.shape("self")); }

Results angle(Call& call) {
  return one(to_floating(to_real(call.dtype_of("self"))), call.shape("self"));
}

Results complex_of(Call& call) {
  return one(to_complex(call.dtype_of("real")), broadcast_args(call, {"real", "imag"}));
}

Results polar(Call& call) {
  return one(to_complex(call.dtype_of("abs")), broadcast_args(call, {"abs", "angle"}));
}

constexpr std::array kFourierOps{
    OpDef{.name = "aten._conj",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .onnx = custom(onnx::conj),
          .executorch = decompose(parts::pairs_conjugate),
          .samples = "c64[a, b]; c128[a]"},
    OpDef{.name = "aten._conj_physical",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::conj),
          .executorch = decompose(parts::pairs_conjugate),
          .samples = "c64[a, b]; c128[a]"},
    OpDef{.name = "aten._fft_c2c",
          .schema = "(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
          .infer = fft_c2c,
          .onnx = decompose(parts::fft_plain),
          .executorch = decompose(parts::fft_plain),
          .samples = "c64[a, b], [1], 0, True; c128[a, b], [0, 1], 1, False"},
    OpDef{.name = "aten._fft_c2r",
          .schema = "(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
          .infer = fft_c2r,
          .onnx = decompose(parts::fft_plain),
          .executorch = decompose(parts::fft_plain),
          .samples = "c64[a, b + 1], [1], 0, 2*b; c128[3, b], [0], 1, 5"},
    OpDef{
        .name = "aten._fft_r2c",
        .schema = "(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        .infer = fft_r2c,
        .onnx = decompose(parts::fft_plain),
        .executorch = decompose(parts::fft_plain),
        .samples = "f32[a, b], [1], 0, True; f64[a, b], [1, 0], 1, True; f32[a, b], [1], 0, False"},
    OpDef{.name = "aten.angle",
          .schema = "(Tensor self) -> Tensor",
          .infer = angle,
          .onnx = custom(onnx::angle),
          .executorch = decompose(parts::angle),
          .samples = "c64[a, b]; f32[a]; i64[a]"},
    OpDef{.name = "aten.complex",
          .schema = "(Tensor real, Tensor imag) -> Tensor",
          .infer = complex_of,
          .onnx = custom(onnx::complex),
          .executorch = decompose(parts::complex),
          .samples = "f32[a, b], f32[a, b]; f64[a, 1], f64[b]"},
    OpDef{.name = "aten.conj",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .onnx = custom(onnx::conj),
          .executorch = custom(executorch::same),
          .pairs = decompose(parts::pairs_conjugate),
          .samples = "c64[a, b]; f32[a]"},
    OpDef{.name = "aten.conj_physical",
          .schema = "(Tensor self) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::conj),
          .executorch = custom(executorch::same),
          .pairs = decompose(parts::pairs_conjugate),
          .samples = "c64[a, b]; f32[a]"},
    OpDef{.name = "aten.fft_fft",
          .schema = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
          .infer = fft,
          .onnx = decompose(parts::fft_of_one),
          .executorch = decompose(parts::fft_of_one),
          .samples = "f32[a, b]; c64[a, b], 5, 0; i64[a, b], None, -1, \"ortho\"; f64[a], b; "
                     "f32[a, 12]; c64[6, a], None, 0, \"forward\"; f32[8, a], None, 0; c64[a, 16]"},
    OpDef{
        .name = "aten.fft_fft2",
        .schema = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        .infer = fftn,
        .onnx = decompose(parts::fft_of_many),
        .executorch = decompose(parts::fft_of_many),
        .samples = "f32[a, b, 4]; c64[a, b], [3, 5]"},
    OpDef{.name = "aten.fft_fftn",
          .schema = "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
          .infer = fftn,
          .onnx = decompose(parts::fft_of_many),
          .executorch = decompose(parts::fft_of_many),
          .samples = "f32[a, b, 4]; c64[a, b], [5]; f32[a, b, 3], None, [1, 2]"},
    OpDef{.name = "aten.fft_fftshift",
          .schema = "(Tensor self, int[1]? dim=None) -> Tensor",
          .infer = like_self,
          .onnx = decompose(parts::fftshift),
          .executorch = decompose(parts::fftshift),
          .samples = "f32[a, b]; c64[a, b], [0]"},
    OpDef{.name = "aten.fft_hfft",
          .schema = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
          .infer = irfft,
          .onnx = decompose(parts::fft_of_one),
          .executorch = decompose(parts::fft_of_one),
          .samples = "c64[a, b + 1]; c128[a, b], 5, 0; c64[a, 7], None, -1, \"forward\"; c64[a, "
                     "7], 11, -1, \"ortho\""},
    OpDef{
        .name = "aten.fft_hfft2",
        .schema = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        .infer = irfftn,
        .onnx = decompose(parts::fft_of_many),
        .executorch = decompose(parts::fft_of_many),
        .samples = "c64[a, b, 4]; c64[a, b + 1], [3, 4]"},
    OpDef{.name = "aten.fft_ifft",
          .schema = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
          .infer = fft,
          .onnx = decompose(parts::fft_of_one),
          .executorch = decompose(parts::fft_of_one),
          .samples = "f32[a, b]; c64[a, b], 5, 0; c64[a, 12], None, -1, \"forward\"; c64[a, 8], "
                     "None, -1, \"ortho\"; c64[a, b], None, 0, \"ortho\""},
    OpDef{
        .name = "aten.fft_ifft2",
        .schema = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        .infer = fftn,
        .onnx = decompose(parts::fft_of_many),
        .executorch = decompose(parts::fft_of_many),
        .samples = "f32[a, b, 4]; c64[a, b], [3, 5]"},
    OpDef{.name = "aten.fft_ifftn",
          .schema = "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
          .infer = fftn,
          .onnx = decompose(parts::fft_of_many),
          .executorch = decompose(parts::fft_of_many),
          .samples = "f32[a, b, 4]; c64[a, b], [5]"},
    OpDef{.name = "aten.fft_ifftshift",
          .schema = "(Tensor self, int[1]? dim=None) -> Tensor",
          .infer = like_self,
          .onnx = decompose(parts::ifftshift),
          .executorch = decompose(parts::ifftshift),
          .samples = "f32[a, b]; c64[a, b], [0]"},
    OpDef{.name = "aten.fft_ihfft",
          .schema = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
          .infer = rfft,
          .onnx = decompose(parts::fft_of_one),
          .executorch = decompose(parts::fft_of_one),
          .samples = "f32[a, b]; f64[a, b], 5, 0; f32[a, 12], None, -1, \"forward\""},
    OpDef{
        .name = "aten.fft_ihfft2",
        .schema = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        .infer = rfftn,
        .onnx = decompose(parts::fft_of_many),
        .executorch = decompose(parts::fft_of_many),
        .samples = "f32[a, b, 4]; f32[a, b], [3, 5]"},
    OpDef{.name = "aten.fft_irfft",
          .schema = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
          .infer = irfft,
          .onnx = decompose(parts::fft_of_one),
          .executorch = decompose(parts::fft_of_one),
          .samples = "c64[a, b + 1]; c128[a, b], 5, 0; f32[a + 1, b], c, 0; c64[a, 7]; c64[a, 7], "
                     "11; c64[a, 5]; c64[a, b], 16, -1, \"forward\""},
    OpDef{
        .name = "aten.fft_irfft2",
        .schema = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        .infer = irfftn,
        .onnx = decompose(parts::fft_of_many),
        .executorch = decompose(parts::fft_of_many),
        .samples = "c64[a, b, 4]; c64[a, b + 1], [3, -1]"},
    OpDef{.name = "aten.fft_irfftn",
          .schema = "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
          .infer = irfftn,
          .onnx = decompose(parts::fft_of_many),
          .executorch = decompose(parts::fft_of_many),
          .samples = "c64[a, b, 5]; c64[a, b + 1], None, [1]; c64[a, b], [4, 6]"},
    OpDef{.name = "aten.fft_rfft",
          .schema = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
          .infer = rfft,
          .onnx = decompose(parts::fft_of_one),
          .executorch = decompose(parts::fft_of_one),
          .samples =
              "f32[a, b]; f64[a, b], 5, 0; f32[a], b; f32[a, 12], None, -1, \"ortho\"; f32[a, 8]"},
    OpDef{
        .name = "aten.fft_rfft2",
        .schema = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        .infer = rfftn,
        .onnx = decompose(parts::fft_of_many),
        .executorch = decompose(parts::fft_of_many),
        .samples = "f32[a, b, 4]; f32[a, b], [3, 5], [1, 0]"},
    OpDef{.name = "aten.fft_rfftn",
          .schema = "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
          .infer = rfftn,
          .onnx = decompose(parts::fft_of_many),
          .executorch = decompose(parts::fft_of_many),
          .samples = "f32[a, b, 5]; f32[a, b], None, [0]; f32[a, b], [4]"},
    OpDef{.name = "aten.imag",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = real_part,
          .onnx = custom(onnx::imag),
          .executorch = decompose(parts::imaginary_part),
          .samples = "c64[a, b]; c128[a]"},
    OpDef{.name = "aten.istft",
          .schema = "(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                    "window=None, bool center=True, bool normalized=False, bool? onesided=None, "
                    "int? length=None, bool return_complex=False) -> Tensor",
          .infer = istft,
          .onnx = decompose(parts::istft),
          .executorch = decompose(parts::istft),
          .samples = "c64[a, 5, b + 2], 8; c64[5, b + 2], 8, 2, length=7; c64[a, 5, b + 3], 8, 4, "
                     "8, f32[8]; c64[5, b + 2], 8, 2, 6, f32[6], True, True; c64[a, 8, b + 3], 8, "
                     "4, onesided=False"},
    OpDef{.name = "aten.polar",
          .schema = "(Tensor abs, Tensor angle) -> Tensor",
          .infer = polar,
          .onnx = custom(onnx::polar),
          .executorch = decompose(parts::polar),
          .samples = "f32[a, b], f32[a, b]; f64[a, 1], f64[b]"},
    OpDef{.name = "aten.real",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = real_part,
          .onnx = custom(onnx::real),
          .executorch = custom(executorch::same),
          .pairs = decompose(parts::real_part),
          .samples = "c64[a, b]; f32[a]"},
    OpDef{.name = "aten.resolve_conj",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .onnx = custom(onnx::unchanged),
          .executorch = custom(executorch::same),
          .pairs = decompose(parts::pairs_as_they_are),
          .samples = "c64[a, b]; f32[a]"},
    OpDef{.name = "aten.resolve_neg",
          .schema = "(Tensor(a) self) -> Tensor(a)",
          .infer = like_self,
          .onnx = custom(onnx::unchanged),
          .executorch = custom(executorch::same),
          .pairs = decompose(parts::pairs_as_they_are),
          .samples = "c64[a, b]; f32[a]"},
    OpDef{.name = "aten.stft",
          .schema = "(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                    "window=None, bool normalized=False, bool? onesided=None, bool? "
                    "return_complex=None, bool? align_to_window=None) -> Tensor",
          .infer = stft,
          .onnx = decompose(parts::stft),
          .executorch = decompose(parts::stft),
          .samples = "f32[a, b + 16], 8, return_complex=True; f32[b + 16], 8, 3, 6, f32[6], "
                     "return_complex=True, onesided=False; f32[b + 16], 9, return_complex=False; "
                     "f32[b + 16], 12, 5, normalized=True, return_complex=True"},
    OpDef{
        .name = "aten.stft.center",
        .schema =
            "(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
            "window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? "
            "onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
        .infer = stft,
        .onnx = decompose(parts::stft),
        .executorch = decompose(parts::stft),
        .samples = "f32[a, b + 16], 8, return_complex=True; f32[b + 16], 9, 4, None, None, True, "
                   "\"constant\", return_complex=True; f32[b + 16], 8, 2, None, None, False, "
                   "return_complex=True"},
};
static_assert(first_bad_row(kFourierOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> fourier_ops() { return kFourierOps; }

}  // namespace modelport::ops