// The forms in which runtimes take quantized weights: one row a form, with all that sets it apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace modelport::weights {

enum class QuantizedLayout : std::uint8_t {
  xnnpack_qbint4,
  xnnpack_qcint4,
  xnnpack_qcint8,
  executorch_embedding_4bit,
  executorch_embedding_byte,
  torchao_int8,
  onnx_matmul_nbits,
  onnx_gather_block_quantized,
  onnx_matmul_integer,
};

/// How codes lie in bytes. Codes are counted from 0: the code of a zero weight is the zero point.
enum class Packing : std::uint8_t {
  low_nibble_first,   // two codes a byte, the even column in the low half
  high_nibble_first,  // two codes a byte, the even column in the high half
  unsigned_byte,
  signed_byte,  // the code minus the middle of its range (8 or 128)
};

constexpr bool in_nibbles(Packing packing) {
  return packing == Packing::low_nibble_first || packing == Packing::high_nibble_first;
}

/// Which columns may share a scale.
enum class Groups : std::uint8_t {
  row,           // the whole row only
  any,           // any number of columns that divides the row, or the whole row
  of_32,         // as `any`, and a multiple of 32
  power_of_two,  // a power of two of 16 or more; the last group of a row may be shorter
};

struct LayoutFacts {
  QuantizedLayout layout;
  std::string_view name;
  std::optional<Packing> four_bits;   // how 4-bit codes lie, where the form has them
  std::optional<Packing> eight_bits;  // the same of 8-bit codes
  Groups groups = Groups::row;
  Dtype scales = Dtype::f32;     // unless the scheme asks for another
  bool other_scales = false;     // the scheme may ask for f32, f16 or bf16
  bool negative_scales = false;  // the kernel multiplies with whatever it is given
  bool zero_points = false;      // the scheme may ask for them
  bool row_scales_flat = false;  // scales of whole rows are [N], not [N, 1]
  bool blocks_apart = false;     // codes are [N, groups, bytes], the last group filled up
};

inline constexpr std::array kLayouts{
    // XNNPACK's blockwise int4 (8da4w). It refuses groups of 16 and scales that are not positive.
    LayoutFacts{.layout = QuantizedLayout::xnnpack_qbint4,
                .name = "xnnpack_qbint4",
                .four_bits = Packing::low_nibble_first,
                .groups = Groups::of_32,
                .scales = Dtype::bf16},
    LayoutFacts{.layout = QuantizedLayout::xnnpack_qcint4,
                .name = "xnnpack_qcint4",
                .four_bits = Packing::low_nibble_first,
                .row_scales_flat = true},
    // 8da8w
    LayoutFacts{.layout = QuantizedLayout::xnnpack_qcint8,
                .name = "xnnpack_qcint8",
                .eight_bits = Packing::signed_byte,
                .row_scales_flat = true},
    // quantized_decomposed::embedding_4bit and embedding_byte of ExecuTorch's kernels.
    LayoutFacts{.layout = QuantizedLayout::executorch_embedding_4bit,
                .name = "executorch_embedding_4bit",
                .four_bits = Packing::high_nibble_first,
                .groups = Groups::any,
                .row_scales_flat = true},
    LayoutFacts{.layout = QuantizedLayout::executorch_embedding_byte,
                .name = "executorch_embedding_byte",
                .eight_bits = Packing::signed_byte,
                .groups = Groups::any,
                .row_scales_flat = true},
    // Weight-only 4w and 8w: torchao keeps a code in a byte of its own, for dequantize_affine.
    LayoutFacts{.layout = QuantizedLayout::torchao_int8,
                .name = "torchao_int8",
                .four_bits = Packing::signed_byte,
                .eight_bits = Packing::signed_byte,
                .groups = Groups::any,
                .other_scales = true,
                .zero_points = true},
    LayoutFacts{.layout = QuantizedLayout::onnx_matmul_nbits,
                .name = "onnx_matmul_nbits",
                .four_bits = Packing::low_nibble_first,
                .eight_bits = Packing::unsigned_byte,
                .groups = Groups::power_of_two,
                .other_scales = true,
                .negative_scales = true,
                .zero_points = true,
                .blocks_apart = true},
    // Also the rows of QMoE, and of a MatMulNBits whose weight an embedding shares.
    LayoutFacts{.layout = QuantizedLayout::onnx_gather_block_quantized,
                .name = "onnx_gather_block_quantized",
                .four_bits = Packing::low_nibble_first,
                .eight_bits = Packing::unsigned_byte,
                .groups = Groups::power_of_two,
                .other_scales = true,
                .negative_scales = true,
                .zero_points = true},
    // int8 beside inputs of uint8: MatMulInteger, DequantizeLinear. A scale for each row.
    LayoutFacts{.layout = QuantizedLayout::onnx_matmul_integer,
                .name = "onnx_matmul_integer",
                .eight_bits = Packing::signed_byte,
                .row_scales_flat = true},
};

consteval bool layout_rows_follow_the_enum() {
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    if (static_cast<std::size_t>(kLayouts[i].layout) != i) return false;
  }
  return true;
}
static_assert(layout_rows_follow_the_enum());

constexpr const LayoutFacts& facts(QuantizedLayout layout) {
  return kLayouts[static_cast<std::size_t>(layout)];
}
constexpr std::string_view name(QuantizedLayout layout) { return facts(layout).name; }

constexpr std::optional<QuantizedLayout> parse_layout(std::string_view text) {
  for (const LayoutFacts& row : kLayouts) {
    if (row.name == text) return row.layout;
  }
  return std::nullopt;
}

}  // namespace modelport::weights
