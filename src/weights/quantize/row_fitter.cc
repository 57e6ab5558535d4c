#include "weights/quantize/row_fitter.h"

#include "weights/convert.h"
#include "weights/quantize/widen.h"

namespace modelport::weights {

RowFitter::RowFitter(const Scheme& scheme, Dtype dtype, std::size_t columns, std::size_t group)
    : fitter_(scheme), dtype_(dtype), columns_(columns), group_(group) {}

std::size_t RowFitter::rows_at_once() const { return groups_per_row() % kBatch == 0 ? 1 : kBatch; }

bool RowFitter::read(std::span<const std::byte> rows) {
  const std::size_t count = rows.size() / row_bytes();
  weights_.resize(count * columns_);
  fits_.resize(count * groups_per_row());
  return widen(dtype_, rows, weights_);
}

void RowFitter::fit(std::span<const float> energies) {
  fitter_.fit({weights_, columns_, group_, energies}, fits_);
}

}  // namespace modelport::weights
