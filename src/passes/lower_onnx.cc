#include "passes/lower_onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ops/rules/rules.h"
#include "passes/rewrite.h"
#include "signature/limits.h"

namespace modelport::passes {
namespace {

using ops::Value;

shape::Dims dims_of(const ir::Graph& graph) {
  shape::Dims dims;
  for (const shape::Dim& dim : graph.dims) dims.declare(dim.name, dim.hint, dim.range);
  return dims;
}

/// Complex numbers are pairs of reals from here on: the nodes that said so go.
void drop_pair_views(ir::Graph& graph) {
  Replacements replacements(graph);
  std::vector<bool> keep(graph.nodes().size(), true);
  for (std::uint32_t i = 0; i < keep.size(); ++i) {
    ir::Node& node = graph.node({i});
    replacements.apply(node);
    if (node.op != "onnx.AsPairs" && node.op != "onnx.FromPairs") continue;
    replacements.replace(node.results[0], input_of(node, 0));
    keep[i] = false;
  }
  replacements.apply_to_outputs(graph);
  graph.keep_nodes(keep);
}

class Lowering {
 public:
  Lowering(const ir::Graph& source, const ops::Lower::Settings& settings)
      : source_(source), dims_(dims_of(source)), lower_(target_, dims_, settings) {
    target_.name = source.name;
    target_.dims = source.dims;
    for (const shape::Guard& guard : source.guards) {
      if (!signature::depends_on_data(guard.condition, source.dims))
        target_.guards.push_back(guard);
    }
    value_of_.resize(source.values().size());
  }

  ir::Graph run() {
    for (const ir::ValueId id : source_.inputs) add_input(id);
    for (const ir::ValueId id : source_.weights) add_weight(id);
    for (const ir::Node& node : source_.nodes()) lower_node(node);
    problems_.throw_if_any();
    for (const ir::Output& output : source_.outputs) {
      // Numbers that sizes decide are no results of their own.
      const ir::ValueId* id = output.value.get<ir::ValueId>();
      if (id == nullptr || !std::holds_alternative<ir::TensorType>(source_.value(*id).type))
        continue;
      target_.outputs.push_back({output.name, {output_value(*id)}});
    }
    add_state();
    add_checks();
    drop_pair_views(target_);
    return std::move(target_);
  }

 private:
  /// What a run leaves in a buffer goes out, to come in again with the next call.
  void add_state() {
    for (const ir::Mutation& mutation : source_.mutations) {
      const ir::ValueId value = output_value(mutation.value);
      const std::string& name = source_.value(mutation.buffer).name;
      target_.outputs.push_back({free_output_name(name + "_out"), {value}});
      target_.mutations.push_back({stored(mutation.buffer), value});
    }
  }

  std::string free_output_name(const std::string& wanted) const {
    const auto taken = [&](const std::string& name) {
      return target_.find_input(name) != nullptr ||
             std::ranges::any_of(target_.outputs,
                                 [&](const ir::Output& output) { return output.name == name; });
    };
    std::string name = wanted;
    for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  /// The weight itself, whose complex numbers are pairs.
  ir::ValueId stored(ir::ValueId weight) const {
    return *target_.find_weight(source_.value(weight).name);
  }

  /// Conditions on what the data decides, each as a value that is true where the program is right.
  void add_checks() {
    for (const ir::Assumption& assumption : source_.assumptions) {
      const ir::ValueId value = lower_.reshape(value_of_[assumption.value.index], {shape::Int(1)});
      const ir::ValueId expected = lower_.number_of(expected_arg(assumption), lower_.dtype(value));
      const ir::Place& place = source_.place(assumption.place);
      target_.assumptions.push_back({lower_.compare("Equal", value, expected), true,
                                     target_.add_place(place.where, place.module_path),
                                     "the model branches on its data, and the program has the "
                                     "branch that the example took"});
    }
    for (const shape::Guard& guard : source_.guards) {
      if (!signature::depends_on_data(guard.condition, source_.dims)) continue;
      target_.assumptions.push_back(
          {lower_.numbers().truth(guard.condition), true,
           target_.add_place(guard.where, guard.module_path),
           fmt::format("the model reads its data, and the program is right where {}",
                       shape::print(guard.condition))});
    }
  }

  static ir::Arg expected_arg(const ir::Assumption& assumption) {
    if (const bool* truth = std::get_if<bool>(&assumption.expected)) return {*truth};
    if (const auto* number = std::get_if<std::int64_t>(&assumption.expected))
      return {shape::Int(*number)};
    return {std::get<double>(assumption.expected)};
  }

  void add_input(ir::ValueId id) {
    const ir::Value& input = source_.value(id);
    const auto* type = std::get_if<ir::TensorType>(&input.type);
    const ir::TensorType own =
        type != nullptr ? *type : ir::TensorType{number_dtype(input.type), {}};
    const ir::ValueId value = target_.add_input(input.name, as_stored(own));
    value_of_[id.index] = is_complex(own.dtype) ? lower_.from_pairs(value) : value;
    if (type == nullptr) {
      lower_.numbers().learn_number(std::get<ir::ScalarType>(input.type), value);
    } else {
      lower_.numbers().learn_sizes(value, own.shape);
    }
  }

  void add_weight(ir::ValueId id) {
    const ir::Value& weight = source_.value(id);
    const ir::ValueId value =
        target_.add_weight(weight.name, as_stored(weight.tensor()), weight.weight_kind);
    value_of_[id.index] = is_complex(weight.tensor().dtype) ? lower_.from_pairs(value) : value;
  }

  /// Complex numbers lie in memory as pairs of reals, which is how the target takes them.
  static ir::TensorType as_stored(ir::TensorType type) {
    if (!is_complex(type.dtype)) return type;
    type.dtype = ops::to_real(type.dtype);
    type.shape.push_back(2);
    return type;
  }

  static Dtype number_dtype(const ir::Type& type) {
    const auto& symbol = std::get<ir::ScalarType>(type).symbol;
    if (std::holds_alternative<shape::Int>(symbol)) return Dtype::i64;
    return std::holds_alternative<shape::Real>(symbol) ? Dtype::f64 : Dtype::boolean;
  }

  ir::Arg translate(const ir::Arg& arg) const {
    if (const ir::ValueId* id = arg.get<ir::ValueId>()) return {value_of_[id->index]};
    if (const ir::ArgList* list = arg.get<ir::ArgList>()) {
      ir::ArgList items;
      for (const ir::Arg& item : *list) items.push_back(translate(item));
      return {std::move(items)};
    }
    return arg;
  }

  void lower_node(const ir::Node& node) {
    const ir::Place& place = source_.place(node.place);
    const ops::OpDef* op = ops::find_op(node.op);
    const bool ready = !mentions_missing(node);
    std::vector<ir::NamedArg> args;
    if (ready) {
      for (const ir::NamedArg& named : node.args)
        args.push_back({named.name, translate(named.arg)});
    }
    std::vector<ir::Type> types;
    for (const ir::ValueId id : node.results) types.push_back(source_.value(id).type);
    try {
      if (op == nullptr) refuse(node, "it has no row in the operator table");
      if (!ready) {
        if (op->onnx.filled() && op->onnx.reason.empty()) return;
        refuse(node, op->onnx.reason.empty() ? "no rule yet" : op->onnx.reason);
      }
      const ops::Values values =
          lower_.lower(*op, args, types, target_.add_place(place.where, place.module_path));
      for (std::size_t i = 0; i < values.size(); ++i) take(node.results[i], values[i]);
    } catch (const ExportError& error) {
      for (const Diagnostic& found : error.diagnostics()) problems_.add(found);
    }
  }

  [[noreturn]] void refuse(const ir::Node& node, std::string_view why) const {
    const ir::Place& place = source_.place(node.place);
    throw ExportError({.code = Code::unsupported_op,
                       .what = fmt::format("onnx has no rule for {}: {}", node.op, why),
                       .where = place.where,
                       .module_path = place.module_path,
                       .ways_out = {"export to pt2", "add a cell: docs/adding-an-operator.md"}});
  }

  /// After a problem the walk goes on, so that all of them are found; what depends on it is left
  /// out.
  bool mentions_missing(const ir::Node& node) const {
    bool missing = false;
    for (const ir::NamedArg& named : node.args) {
      ir::for_each_value(named.arg, [&](ir::ValueId id) {
        missing = missing || value_of_[id.index] == ops::kNoValue;
      });
    }
    return missing;
  }

  void take(ir::ValueId result, Value value) {
    value_of_[result.index] = value;
    const ir::Type& type = source_.value(result).type;
    if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) {
      lower_.numbers().learn_number(*scalar, value);
      return;
    }
    const auto& tensor = std::get<ir::TensorType>(type);
    const ir::TensorType& made = lower_.type(value);
    if (made.dtype != tensor.dtype || made.shape.size() != tensor.shape.size())
      throw InternalError(
          fmt::format("the ONNX cell of {} gives {} with {} axes instead of {} with {}",
                      source_.node(source_.value(result).producer).op, name(made.dtype),
                      made.shape.size(), name(tensor.dtype), tensor.shape.size()));
    // The rule's own shape is the exact one.
    target_.value(value).type = tensor;
    if (is_complex(tensor.dtype)) return;
    for (const shape::Int& size : tensor.shape) {
      const auto symbol = size.as_symbol();
      if (symbol && !lower_.numbers().knows(*symbol))
        return lower_.numbers().learn_sizes(value, tensor.shape);
    }
  }

  /// A value that is no input, weight or constant and no output yet: ONNX wants each output to be
  /// the result of a node of its own.
  Value output_value(ir::ValueId id) {
    Value value = value_of_[id.index];
    if (is_complex(lower_.dtype(value))) value = lower_.as_pairs(value);
    const bool made = target_.value(value).origin == ir::Origin::node &&
                      target_.node(target_.value(value).producer).op != "onnx.Constant";
    if (made && outputs_.insert(value.index).second) return value;
    const Value copy = lower_.emit("Identity", {value}, {}, lower_.type(value));
    outputs_.insert(copy.index);
    return copy;
  }

  const ir::Graph& source_;
  ir::Graph target_;
  shape::Dims dims_;
  ops::Lower lower_;
  std::vector<Value> value_of_;
  std::set<std::uint32_t> outputs_;
  Diagnostics problems_;
};

}  // namespace

ir::Graph lower_to_onnx(const ir::Graph& graph, const ops::Lower::Settings& settings) {
  return Lowering(graph, settings).run();
}

}  // namespace modelport::passes
