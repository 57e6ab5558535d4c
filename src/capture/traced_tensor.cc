#include "capture/traced_tensor.h"

#include <algorithm>
#include <numeric>

#include "capture/session.h"
#include "capture/sym_number.h"

namespace modelport::capture {

namespace {

c10::Device shown_device(const at::Tensor& real) {
  // Weightless: what depends on a weight is computed on meta, but the model believes that it runs
  // on the CPU.
  return real.is_meta() ? c10::Device(c10::kCPU) : real.device();
}

c10::DispatchKeySet shown_keys(const at::Tensor& real) {
  if (real.is_cuda()) {
    return c10::DispatchKeySet({c10::DispatchKey::CUDA, c10::DispatchKey::AutogradCUDA,
                                c10::DispatchKey::ADInplaceOrView});
  }
  return c10::DispatchKeySet(
      {c10::DispatchKey::CPU, c10::DispatchKey::AutogradCPU, c10::DispatchKey::ADInplaceOrView});
}

}  // namespace

TracedTensor::TracedTensor(std::shared_ptr<Session> session, at::Tensor real, Trace trace)
    : TensorImpl(shown_keys(real), real.dtype(), shown_device(real)),
      session_(std::move(session)),
      real_(std::move(real)),
      trace_(std::move(trace)) {
  set_custom_sizes_strides(SizesStridesPolicy::CustomSizes);
  set_storage_access_should_throw();
  read_sizes();
}

void TracedTensor::read_sizes() {
  const ir::TensorType& type = session_->graph().value(trace_.value).tensor();
  sizes_.clear();
  strides_.clear();
  sizes_.reserve(type.shape.size());
  for (const shape::Int& size : type.shape)
    sizes_.push_back(to_symint(session_, session_->dims().simplify(size)));
}

void TracedTensor::become(at::Tensor real, Trace trace) {
  real_ = std::move(real);
  trace_ = std::move(trace);
  read_sizes();
}

c10::IntArrayRef TracedTensor::sizes_custom() const {
  // C++ code that wants numbers gets this run's, and what it saw is recorded as pinned.
  for (const c10::SymInt& size : sizes_) {
    if (size.is_heap_allocated()) session_->pin(int_of(size));
  }
  return real_.sizes();
}

int64_t TracedTensor::size_custom(int64_t d) const {
  const int64_t axis = c10::maybe_wrap_dim(d, dim_custom(), false);
  if (sizes_[axis].is_heap_allocated()) session_->pin(int_of(sizes_[axis]));
  return real_.size(axis);
}

int64_t TracedTensor::numel_custom() const {
  const c10::SymInt count = sym_numel_custom();
  return count.is_heap_allocated() ? session_->pin(int_of(count)) : real_.numel();
}

c10::SymInt TracedTensor::sym_numel_custom() const {
  shape::Int count = 1;
  for (const c10::SymInt& size : sizes_) count *= int_of(size);
  return to_symint(session_, count);
}

c10::SymIntArrayRef TracedTensor::sym_strides_custom() const {
  if (strides_.size() == sizes_.size() && !sizes_.empty()) return strides_;
  // Where the real tensor is dense, its strides are products of sizes, in the order of the strides.
  const std::size_t rank = sizes_.size();
  strides_.assign(rank, c10::SymInt(1));
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    const bool smaller = real_.stride(a) < real_.stride(b);
    return smaller || (real_.stride(a) == real_.stride(b) && a > b);
  });
  shape::Int expected = 1;
  std::int64_t expected_now = 1;
  for (const std::size_t axis : order) {
    const bool follows = real_.stride(axis) == expected_now || real_.size(axis) == 1;
    strides_[axis] = follows ? to_symint(session_, expected) : c10::SymInt(real_.stride(axis));
    if (!follows) continue;
    expected = expected * int_of(sizes_[axis]);
    expected_now *= real_.size(axis);
  }
  return strides_;
}

c10::SymBool TracedTensor::sym_is_contiguous_custom(at::MemoryFormat format) const {
  if (format != at::MemoryFormat::Contiguous || real_.numel() == 0)
    return real_.is_contiguous(format);
  // A dimension that happens to be 1 has any stride; a symbolic one must have the stride that it
  // needs at other sizes.
  std::int64_t expected = 1;
  for (std::size_t d = sizes_.size(); d-- > 0;) {
    const auto axis = static_cast<std::int64_t>(d);
    const bool matters = real_.size(axis) != 1 || sizes_[d].is_heap_allocated();
    if (matters && real_.stride(axis) != expected) return false;
    expected *= real_.size(axis);
  }
  return true;
}

bool TracedTensor::is_strides_like_custom(at::MemoryFormat format) const {
  return real_.unsafeGetTensorImpl()->is_strides_like(format);
}

c10::SymBool TracedTensor::sym_is_non_overlapping_and_dense_custom() const {
  return real_.is_non_overlapping_and_dense();
}

c10::intrusive_ptr<c10::TensorImpl> TracedTensor::shallow_copy_and_detach(
    const c10::VariableVersion& version, bool allow_change) const {
  auto copy = c10::make_intrusive<TracedTensor>(session_, real_, trace_);
  copy->set_version_counter(version);
  copy->set_allow_tensor_metadata_change(allow_change);
  return copy;
}

c10::intrusive_ptr<c10::TensorImpl> TracedTensor::shallow_copy_and_detach(
    c10::VariableVersion&& version, bool allow_change) const {
  const c10::VariableVersion moved = std::move(version);
  return shallow_copy_and_detach(moved, allow_change);
}

TracedTensor* as_traced(const at::Tensor& tensor) {
  return tensor.defined() ? dynamic_cast<TracedTensor*>(tensor.unsafeGetTensorImpl()) : nullptr;
}

}  // namespace modelport::capture
