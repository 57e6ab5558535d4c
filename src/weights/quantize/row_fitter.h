// Rows of a matrix as they lie in a file, and the fits of their groups.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "weights/quantize/fit.h"
#include "weights/quantize/scheme.h"

namespace modelport::weights {

/// A few rows after the others; has memory of its own, so each thread needs one.
class RowFitter {
 public:
  /// The scheme is one that quantized_form() accepts, with a group for these columns.
  RowFitter(const Scheme& scheme, Dtype dtype, std::size_t columns, std::size_t group);

  /// So many that their groups make whole batches for the search: one row, or of those that have
  /// few groups, several.
  std::size_t rows_at_once() const;
  std::size_t row_bytes() const { return columns_ * byte_size(dtype_); }
  std::size_t groups_per_row() const { return (columns_ + group_ - 1) / group_; }

  /// Takes whole rows; false where a weight is not finite.
  bool read(std::span<const std::byte> rows);
  /// `energies`: what each column counts, or none.
  void fit(std::span<const float> energies);
  std::span<const float> weights() const { return weights_; }
  /// One for each group; whoever knows them need not ask for them.
  std::span<Fit> fits() { return fits_; }
  Window window(const Fit& fit) const { return fitter_.window(fit); }

 private:
  GroupFitter fitter_;
  Dtype dtype_;
  std::size_t columns_;
  std::size_t group_;
  std::vector<float> weights_;
  std::vector<Fit> fits_;
};

}  // namespace modelport::weights
