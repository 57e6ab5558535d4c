// Builds calls of ExecuTorch's kernels in our own IR: a node `et.aten.add.out` for each, with the
// arguments of the functional schema. The tensors that a kernel writes to are the node's results;
// sizes stay symbolic, the writer computes them.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "ops/emit/emitter.h"
#include "ops/executorch/storing.h"

namespace modelport::ops::executorch {

class Lower : public emit::Emitter {
 public:
  Lower(ir::Graph& graph, shape::Dims& dims, Storing storing = {});

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

  /// A node whose results are computed when the file is written.
  Values written_out(std::string_view name, std::vector<ir::NamedArg> args,
                     std::vector<ir::Type> types);
  const Storing& storing() const { return storing_; }
  /// A weight that runs write to keeps its type.
  void add_state(Value weight) { state_.insert(weight.index); }
  bool is_weight(Value x) const;
  struct Quantized {
    Value codes = kNoValue;
    Value scales = kNoValue;
  };
  /// The weight as codes and scales: the node `et.quantize`, once for each weight.
  Quantized quantized(Value weight, const StoredAs& stored);

 protected:
  Values lower_row(const OpDef& op) override;
  Value add_constant(ir::TensorType type, std::vector<ir::NamedArg> contents) override;

 private:
  /// Whether operands or results of the call are complex.
  bool has_complex();
  ir::Arg operand(const Parameter& parameter, bool promoted);
  bool gives_integers();
  std::optional<Dtype> type_beside(const Parameter& parameter, Value value);
  ir::Arg as_tensor(const ir::Arg& number);

  Storing storing_;
  std::unordered_set<std::uint32_t> state_;
  std::map<std::pair<std::uint32_t, std::string_view>, Quantized> quantized_;
};

}  // namespace modelport::ops::executorch
