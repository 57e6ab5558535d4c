#include "capture/shape_only.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>

#include <algorithm>

#include "ops/table/op.h"

namespace modelport::capture {

using ops::Layout;

namespace {

template <class Visit>
void for_each_tensor(const std::vector<c10::IValue>& operands, Visit&& visit) {
  for (const c10::IValue& v : operands) {
    if (v.isTensor() && v.toTensor().defined()) visit(v.toTensor());
    if (v.isTensorList()) {
      for (const at::Tensor& t : v.toTensorVector()) visit(t);
    }
  }
}

bool all_dense(const std::vector<c10::IValue>& operands) {
  bool dense = true;
  for_each_tensor(operands, [&](const at::Tensor& t) { dense = dense && t.is_contiguous(); });
  return dense;
}

/// Images keep their layout through `cat`.
bool any_channels_last(const std::vector<c10::IValue>& operands) {
  bool found = false;
  for_each_tensor(operands, [&](const at::Tensor& t) {
    found = found || (t.dim() >= 4 && !t.is_contiguous() &&
                      t.suggest_memory_format() != at::MemoryFormat::Contiguous);
  });
  return found;
}

/// Operands that the kernel would refuse are left to torch, which says so.
bool types_fit(Layout layout, const std::vector<c10::IValue>& operands) {
  if (layout == Layout::dense_rows)
    return at::isIntegralType(operands[1].toTensor().scalar_type(), false);
  if (layout == Layout::dense_joined) return true;
  const c10::ScalarType first = operands[0].toTensor().scalar_type();
  return std::all_of(operands.begin(), operands.end(), [&](const c10::IValue& v) {
    const bool mask =
        v.isTensor() && v.toTensor().defined() && v.toTensor().scalar_type() == at::kBool;
    return !v.isTensor() || !v.toTensor().defined() || mask || v.toTensor().scalar_type() == first;
  });
}

/// Pointwise operators lay out their result after their operands; torch's own iterator says how.
std::vector<std::int64_t> pointwise_strides(const std::vector<c10::IValue>& operands,
                                            c10::ScalarType dtype) {
  std::vector<at::Tensor> tensors;
  for_each_tensor(operands, [&](const at::Tensor& t) { tensors.push_back(t); });
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).declare_static_dtype_and_device(
      dtype, at::kMeta);
  config.add_owned_output(at::Tensor());
  for (const at::Tensor& t : tensors)
    config.add_owned_const_input(t.is_meta() ? t : t.to(at::kMeta));
  const at::TensorIterator iterator = config.build();
  return iterator.output(0).strides().vec();
}

}  // namespace

bool has_known_layout(const OpFacts& facts, const std::vector<c10::IValue>& operands) {
  if (facts.writes || facts.row == nullptr) return false;
  const Layout layout = ops::layout_of(*facts.row);
  if (facts.random) return layout == Layout::dense;  // attention, whose dropout is off
  switch (layout) {
    case Layout::unknown:
      return false;
    case Layout::dense:
    case Layout::dense_rows:
    case Layout::dense_joined:
      return types_fit(layout, operands) && !any_channels_last(operands);
    case Layout::dense_for_dense:
      return all_dense(operands);
    case Layout::like_operands:
      return true;
  }
  __builtin_unreachable();
}

at::Tensor shape_only_result(const OpFacts& facts, const std::vector<c10::IValue>& operands,
                             const std::vector<std::int64_t>& sizes, c10::ScalarType dtype) {
  if (ops::layout_of(*facts.row) == Layout::like_operands && !all_dense(operands)) {
    return at::detail::empty_strided_meta(sizes, pointwise_strides(operands, dtype), dtype);
  }
  return at::detail::empty_meta(sizes, dtype);
}

at::Tensor shape_only_cast(const at::Tensor& from, c10::ScalarType dtype) {
  if (from.is_non_overlapping_and_dense())
    return at::detail::empty_strided_meta(from.sizes(), from.strides(), dtype);
  return at::detail::empty_meta(from.sizes(), dtype);
}

}  // namespace modelport::capture
