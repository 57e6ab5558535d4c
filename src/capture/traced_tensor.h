// A tensor under capture: the real tensor of the example run together with the graph value it
// stands for. To the model it is a tensor with symbolic sizes; it has no storage of its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace modelport::capture {

class Session;

/// Conditions on sizes under which a result is a copy. `reshape` and `contiguous` copy where the
/// layout in memory forces them to, and an axis of size one forces nobody.
using CopiedWhere = std::vector<shape::Bool>;

/// Memory that one or more tensors look at. A write through any of them makes a new version of the
/// base value.
struct Memory {
  ir::ValueId base;
  std::uint32_t version = 0;
  bool lost_data =
      false;  // weightless: something unknown was written, the real bytes mean nothing any more

  /// Memories that are copies of this one, or that this one is a copy of, at the example's sizes.
  struct Copy {
    std::weak_ptr<Memory> other;
    std::shared_ptr<const CopiedWhere> where;
  };
  std::vector<Copy> copies;
  /// A copy was written to: whoever reads this memory relies on its being a copy.
  std::vector<std::shared_ptr<const CopiedWhere>> asked_when_read;
  /// The same of a write through a view that is a copy at other sizes, for those who see it.
  std::vector<std::shared_ptr<const CopiedWhere>> asked_when_stale;
};

/// How a tensor looks at its memory: the last view operator, and the ones before it.
struct ViewStep {
  std::shared_ptr<const ViewStep> before;  // null: applied to the base
  std::string op;
  std::string self_name;                            // the argument that is viewed
  std::vector<ir::NamedArg> args;                   // the others
  std::vector<ir::Type> results;                    // of the operator; lists have several
  std::size_t result = 0;                           // which of them
  ir::TensorType from;                              // type of what is viewed
  std::shared_ptr<const CopiedWhere> copied_where;  // null: a view at all sizes
};

struct Trace {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<const ViewStep> view;
  std::uint32_t version = 0;  // of the memory, when `value` was made
  ir::ValueId value;
};

class TracedTensor final : public c10::TensorImpl {
 public:
  TracedTensor(std::shared_ptr<Session> session, at::Tensor real, Trace trace);

  const at::Tensor& real() const { return real_; }
  void set_real(at::Tensor real) { real_ = std::move(real); }
  Trace& trace() { return trace_; }
  const std::shared_ptr<Session>& session() const { return session_; }
  /// After an operator that changes the metadata in place (unsqueeze_).
  void become(at::Tensor real, Trace trace);

  c10::IntArrayRef sizes_custom() const override;
  int64_t size_custom(int64_t d) const override;
  c10::IntArrayRef strides_custom() const override { return real_.strides(); }
  int64_t numel_custom() const override;
  int64_t dim_custom() const override { return real_.dim(); }
  int64_t storage_offset_custom() const override { return real_.storage_offset(); }
  c10::SymIntArrayRef sym_sizes_custom() const override { return sizes_; }
  c10::SymIntArrayRef sym_strides_custom() const override;
  c10::SymInt sym_numel_custom() const override;
  c10::SymInt sym_storage_offset_custom() const override { return real_.storage_offset(); }
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;
  bool is_strides_like_custom(at::MemoryFormat format) const override;
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                              bool allow_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                              bool allow_change) const override;
  const char* tensorimpl_type_name() const override { return "modelport::TracedTensor"; }

 private:
  void read_sizes();
  std::shared_ptr<Session> session_;
  at::Tensor real_;
  Trace trace_;
  std::vector<c10::SymInt> sizes_;
  mutable std::vector<c10::SymInt> strides_;  // made when asked for
};

/// Null for any other tensor.
TracedTensor* as_traced(const at::Tensor& tensor);

}  // namespace modelport::capture
