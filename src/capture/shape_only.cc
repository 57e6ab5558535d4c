#include "capture/shape_only.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>

#include <algorithm>

#include "ops/table/families.h"

namespace modelport::capture {

namespace {

bool in_family(const ops::OpDef* row, std::span<const ops::OpDef> family) {
  return row >= family.data() && row < family.data() + family.size();
}

bool is_pointwise(const ops::OpDef* row) {
  return in_family(row, ops::unary_ops()) || in_family(row, ops::binary_ops()) ||
         in_family(row, ops::ternary_ops()) || in_family(row, ops::compare_ops()) ||
         in_family(row, ops::bitwise_ops());
}

template <std::size_t N>
bool among(std::string_view op, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

/// The result is always new and dense.
bool gives_dense(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "aten.bmm",    "aten.cat",    "aten.embedding", "aten.layer_norm",
      "aten.linear", "aten.matmul", "aten.mm",        "aten.scaled_dot_product_attention",
      "aten.stack"};
  return among(op, kOps);
}

/// The result is new, and dense where all operands are.
bool gives_dense_for_dense(const ops::OpDef* row, std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "aten.gelu", "aten.glu",      "aten.group_norm", "aten.index_select",
      "aten.relu", "aten.rms_norm", "aten.silu",       "aten.softmax.int"};
  return among(op, kOps) || in_family(row, ops::reduce_ops()) || in_family(row, ops::scan_ops());
}

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
bool types_fit(const OpFacts& facts, const std::vector<c10::IValue>& operands) {
  if (facts.name == "aten.embedding")
    return at::isIntegralType(operands[1].toTensor().scalar_type(), false);
  if (facts.name == "aten.cat" || facts.name == "aten.stack") return true;
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
  if (facts.writes || facts.row == nullptr || facts.random) {
    return facts.name == "aten.scaled_dot_product_attention" && !facts.writes;
  }
  if (gives_dense(facts.name)) return types_fit(facts, operands) && !any_channels_last(operands);
  if (is_pointwise(facts.row)) return true;
  return gives_dense_for_dense(facts.row, facts.name) && all_dense(operands);
}

at::Tensor shape_only_result(const OpFacts& facts, const std::vector<c10::IValue>& operands,
                             const std::vector<std::int64_t>& sizes, c10::ScalarType dtype) {
  if (is_pointwise(facts.row) && !all_dense(operands)) {
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
