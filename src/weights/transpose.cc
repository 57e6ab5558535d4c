#include "weights/transpose.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace modelport::weights {
namespace {

struct Block {
  std::size_t rows = 0;  // of the matrix as it is
  std::size_t columns = 0;
  std::size_t first = 0;  // columns [first, last) become rows of `out`
  std::size_t last = 0;
};

/// In tiles, so that both sides stay in the cache.
template <class Element>
void transpose(const std::byte* in, std::byte* out, const Block& block) {
  constexpr std::size_t kTile = 32;
  for (std::size_t row = 0; row < block.rows; row += kTile) {
    for (std::size_t column = block.first; column < block.last; column += kTile) {
      const std::size_t row_end = std::min(row + kTile, block.rows);
      const std::size_t column_end = std::min(column + kTile, block.last);
      for (std::size_t j = column; j < column_end; ++j) {
        for (std::size_t i = row; i < row_end; ++i) {
          std::memcpy(out + ((j - block.first) * block.rows + i) * sizeof(Element),
                      in + (i * block.columns + j) * sizeof(Element), sizeof(Element));
        }
      }
    }
  }
}

void transpose(std::size_t element, const std::byte* in, std::byte* out, const Block& block) {
  switch (element) {
    case 1:
      return transpose<std::uint8_t>(in, out, block);
    case 2:
      return transpose<std::uint16_t>(in, out, block);
    case 4:
      return transpose<std::uint32_t>(in, out, block);
    case 8:
      return transpose<std::uint64_t>(in, out, block);
    default:
      throw InternalError("a matrix of elements that cannot be transposed");
  }
}

}  // namespace

ConversionCounts stream_transposed(const Weight& matrix, Dtype dtype, Sink& sink) {
  if (matrix.shape.size() != 2) throw InternalError("only matrices are transposed");
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  const auto rows = static_cast<std::size_t>(matrix.shape[0]);
  const auto columns = static_cast<std::size_t>(matrix.shape[1]);
  const std::size_t element = byte_size(matrix.dtype);
  if (rows == 0 || columns == 0) return {};
  const std::size_t step = std::clamp<std::size_t>(kPiece / (rows * element), 1, columns);
  const Contents held = matrix.contents();
  std::vector<std::byte> piece;
  ConversionCounts counts;
  for (std::size_t first = 0; first < columns; first += step) {
    const std::size_t last = std::min(first + step, columns);
    piece.resize((last - first) * rows * element);
    transpose(element, held.bytes.data(), piece.data(), {rows, columns, first, last});
    if (dtype == matrix.dtype) {
      sink.write(piece);
    } else {
      counts += convert_to(sink, matrix.dtype, piece, dtype);
    }
  }
  if (matrix.file) matrix.file->forget(held.bytes);
  return counts;
}

}  // namespace modelport::weights
