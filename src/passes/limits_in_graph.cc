// What a program is valid for as nodes of its own: a runtime that knows nothing of limits then
// fails instead of giving other values.
#include <fmt/format.h>

#include "ops/onnx/lower.h"
#include "passes/onnx_passes.h"
#include "shape/program_dims.h"
#include "signature/limits.h"

namespace modelport::passes {
namespace {

using ops::Value;
using shape::Int;

class LimitNodes {
 public:
  LimitNodes(ir::Graph& graph, int opset)
      : graph_(graph), dims_(shape::dims_of(graph.dims)), lower_(graph, dims_, {.opset = opset}) {
    for (const ir::ValueId id : graph.inputs)
      lower_.sources().learn_sizes(id, graph.value(id).tensor().shape);
  }

  void run() {
    if (graph_.outputs.empty()) return;
    const signature::Limits limits = signature::limits_of(graph_);
    for (const ir::ValueId id : graph_.inputs) require_sizes(id);
    for (const shape::Dim& dim : limits.dims) {
      const shape::Bool condition = signature::range_condition(dim);
      const SourceLine& where =
          dim.range.hi == shape::Range::kUnbounded ? dim.lo_where : dim.hi_where;
      if (!condition.constant()) require(condition, where);
    }
    for (const shape::Guard& guard : limits.conditions) require(guard.condition, guard.where);
    for (const ir::Assumption& assumption : graph_.assumptions)
      require(assumption.value, "data as in the example", graph_.place(assumption.place).where);
    if (zeros_.empty()) return;
    put_before_the_first_output();
  }

 private:
  /// Sizes that have to be what other inputs say; runtimes test plain numbers themselves.
  void require_sizes(ir::ValueId input) {
    const std::vector<Int> sizes = graph_.value(input).tensor().shape;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis].is_constant()) continue;
      const Value wanted = lower_.size(sizes[axis]);
      const auto at = static_cast<std::int64_t>(axis);
      const Value given = lower_.emit(
          "Shape", {input}, {{"start", {Int(at)}}, {"end", {Int(at + 1)}}}, {Dtype::i64, {Int(1)}});
      require(lower_.compare("Equal", given, wanted),
              fmt::format("axis {} of {} is {}", axis, graph_.value(input).name,
                          shape::print(sizes[axis])),
              {});
    }
  }

  void require(const shape::Bool& condition, const SourceLine& where) {
    require(lower_.numbers().truth(condition), shape::print(condition), where);
  }

  /// An index out of range where the condition does not hold. Runtimes name the node that failed,
  /// so its name says what was wrong.
  void require(Value truth, const std::string& what, const SourceLine& where) {
    const Value index = lower_.where(truth, lower_.ints({0}), lower_.ints({1}));
    const std::string line = where.known() ? fmt::format(" ({}:{})", where.file, where.line) : "";
    const Value zero = lower_.gather(lower_.ints({0}), index, 0);
    ir::Node& node = graph_.node(graph_.value(zero).producer);
    node.place = graph_.add_place(where, fmt::format("limit: {}{}", what, line));
    zeros_.push_back(zero);
  }

  /// Its shape is asked for with all zeros added: nothing changes, and nothing can be left out.
  void put_before_the_first_output() {
    ir::Arg& output = graph_.outputs.front().value;
    const Value value = *output.get<ir::ValueId>();
    const ir::TensorType type = graph_.value(value).tensor();
    Value zero = zeros_.front();
    for (std::size_t i = 1; i < zeros_.size(); ++i) zero = lower_.add(zero, zeros_[i]);
    const Value shape = lower_.emit("Shape", {value}, {}, {Dtype::i64, {Int(type.shape.size())}});
    const Value same =
        lower_.emit("Add", {shape, zero}, {}, {Dtype::i64, {Int(type.shape.size())}});
    output = {lower_.emit("Reshape", {value, same}, {{"allowzero", {Int(1)}}}, type)};
    for (ir::Mutation& mutation : graph_.mutations) {
      if (mutation.value == value) mutation.value = *output.get<ir::ValueId>();
    }
  }

  ir::Graph& graph_;
  shape::Dims dims_;
  ops::onnx::Lower lower_;
  ops::Values zeros_;
};

}  // namespace

void put_limits_into_graph(ir::Graph& graph, int opset) { LimitNodes(graph, opset).run(); }

}  // namespace modelport::passes
