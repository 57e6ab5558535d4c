// Joins the parts of the large families.
#include "ops/table/family_parts.h"

#include <initializer_list>
#include <vector>

#include "ops/table/families.h"

namespace modelport::ops {
namespace {

std::vector<OpDef> joined_parts(std::initializer_list<std::span<const OpDef>> parts) {
  std::vector<OpDef> rows;
  for (const std::span<const OpDef> part : parts) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

std::span<const OpDef> shape_ops() {
  static const std::vector<OpDef> rows =
      joined_parts({view_ops(), axes_ops(), cut_ops(), join_ops(), pad_ops()});
  return rows;
}

std::span<const OpDef> indexing_ops() {
  static const std::vector<OpDef> rows =
      joined_parts({pick_ops(), put_ops(), search_ops(), counted_ops()});
  return rows;
}

std::span<const OpDef> linear_ops() {
  static const std::vector<OpDef> rows = joined_parts({product_ops(), attention_ops()});
  return rows;
}

std::span<const OpDef> neural_ops() {
  static const std::vector<OpDef> rows = joined_parts(
      {convolution_ops(), pool_ops(), normalize_ops(), resample_ops(), recurrent_ops()});
  return rows;
}

std::span<const OpDef> spectral_ops() {
  static const std::vector<OpDef> rows = joined_parts({fourier_ops(), matrix_ops()});
  return rows;
}

}  // namespace modelport::ops
