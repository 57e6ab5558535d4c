// Records one operator call: runs it for real, infers the symbolic types of its results, writes the
// node.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "capture/operands.h"

namespace modelport::capture {

class Recorder {
 public:
  Recorder(Session& session, const c10::OperatorHandle& op, torch::jit::Stack& stack);
  /// Replaces the operands on the stack by the results.
  void run();

 private:
  void record();
  void identity();
  void cast();
  at::Tensor cast_without_data(const at::Tensor& before,
                               const std::vector<c10::IValue>& real) const;
  void read_number();
  void read_truth();
  void equal();
  void all_close();
  void copy();
  void size();
  void reshape_self();
  /// `as_strided` reads memory: its operand with the axes in the order that they have there, so
  /// that the node means the same for those who know no strides.
  std::vector<ir::NamedArg> in_memory_order(std::vector<ir::NamedArg> args, const at::Tensor& real);
  void pin_read_strides(const std::vector<ir::NamedArg>& args);
  /// `x[:-n]` with a symbol for n: its bounds from the front. That n is above 0 is a condition: a
  /// bound of -0 means something else.
  void count_from_front(std::vector<ir::NamedArg>& args);
  [[noreturn]] void refuse();
  void refuse_unseen_numbers(const std::vector<c10::IValue>& results);

  /// Runs the operator below the mode and autograd; results in order, lists flattened.
  std::vector<c10::IValue> run_for_real(const std::vector<c10::IValue>& real);
  std::vector<ir::Type> infer(const std::vector<ir::NamedArg>& args,
                              const std::vector<at::Tensor>& results);
  void check_rule(const std::vector<ir::Type>& types, const std::vector<at::Tensor>& results);
  void finish_writes(const std::vector<c10::IValue>& real, std::vector<ir::ValueId> values);
  /// A result with memory of its own, or a view of an operand's.
  at::Tensor wrap_result(const std::vector<ir::NamedArg>& args,
                         const std::vector<c10::IValue>& real, ir::NodeId node, std::size_t index,
                         const at::Tensor& result);
  /// Where a result of this operand is a copy, or a view, as in this run (`copied`); null where it
  /// cannot be otherwise.
  std::shared_ptr<const CopiedWhere> copied_where(const Trace& from, bool copied) const;
  /// A result with memory of its own, which may be the operand's at other sizes.
  at::Tensor wrap_own(const at::Tensor& result, ir::ValueId value);
  /// The operand that the result is, or looks at: its index; nothing where the result has memory of
  /// its own.
  std::optional<std::size_t> viewed_operand(const std::vector<c10::IValue>& real,
                                            const at::Tensor& result) const;
  /// In a capture without data: the result of an operator that always makes a new dense tensor, by
  /// its rule alone.
  std::optional<at::Tensor> result_without_data(const std::vector<ir::NamedArg>& args,
                                                const std::vector<c10::IValue>& real);
  void push_results(std::vector<c10::IValue> results);
  const at::Tensor& tensor_operand(std::size_t index) const { return operands_[index].toTensor(); }

  Session& session_;
  const c10::OperatorHandle& op_;
  const OpFacts& facts_;
  torch::jit::Stack& stack_;
  std::vector<c10::IValue> operands_;
  ir::Place place_;
};

}  // namespace modelport::capture
