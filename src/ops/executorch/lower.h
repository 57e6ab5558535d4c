// Builds calls of ExecuTorch's kernels in our own IR: a node `et.aten.add.out` for each, with the
// arguments of the functional schema. The tensors that a kernel writes to are the node's results;
// sizes stay symbolic, the writer computes them.
#pragma once

#include "ops/emit/emitter.h"

namespace modelport::ops::executorch {

class Lower : public emit::Emitter {
 public:
  Lower(ir::Graph& graph, shape::Dims& dims);

  std::string_view refusal(const OpDef& op) const override;

  /// A kernel by its full name ("aten::add.out") with these arguments, and the results of the call.
  Values kernel(std::string_view name, std::vector<ir::NamedArg> args);
  /// The same with results of other types than the call's.
  Values kernel(std::string_view name, std::vector<ir::NamedArg> args, std::vector<ir::Type> types);
  /// A kernel with the call's own operands, in the order of the schema; `promoted` casts tensors to
  /// the type of the result first.
  Values kernel_with_own_operands(std::string_view name, bool promoted = false);
  /// A node of the dialect with one result of this type.
  Values node(std::string_view name, std::vector<ir::NamedArg> args, ir::TensorType type);

 protected:
  Values lower_row(const OpDef& op) override;
  Value add_constant(ir::TensorType type, std::vector<ir::NamedArg> contents) override;

 private:
  ir::Arg operand(const Parameter& parameter, bool promoted);
  ir::Arg as_tensor(const ir::Arg& number);
};

}  // namespace modelport::ops::executorch
