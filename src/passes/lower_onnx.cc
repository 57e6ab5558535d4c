// What is ONNX's own in lowering: complex numbers as pairs, state as inputs and outputs, conditions
// as values.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ops/onnx/lower.h"
#include "ops/rules/rules.h"
#include "passes/lower_targets.h"
#include "passes/lowering.h"
#include "passes/rewrite.h"
#include "shape/program_dims.h"
#include "signature/limits.h"

namespace modelport::passes {
namespace {

using ops::Value;

class OnnxLowering : public Lowering {
 public:
  OnnxLowering(const ir::Graph& source, const OnnxTarget& asked)
      : Lowering(source),
        lower_(target(), dims(), {.opset = asked.opset, .for_onnxruntime = asked.for_onnxruntime}) {
    for (const shape::Guard& guard : source.guards) {
      if (!shape::depends_on_data(guard.condition, source.dims)) target().guards.push_back(guard);
    }
  }

 private:
  ops::onnx::Lower& emitter() override { return lower_; }

  void finish() override {
    for (const ir::Output& output : source().outputs) {
      // Numbers that sizes decide are no results of their own.
      const ir::ValueId* id = output.value.get<ir::ValueId>();
      if (id == nullptr || !std::holds_alternative<ir::TensorType>(source().value(*id).type))
        continue;
      target().outputs.push_back({output.name, {output_value(*id)}});
    }
    add_state();
    add_checks();
    drop_pair_views();
  }

  /// What a run leaves in a buffer goes out, to come in again with the next call.
  void add_state() {
    for (const ir::Mutation& mutation : source().mutations) {
      const ir::ValueId value = output_value(mutation.value);
      const std::string& name = source().value(mutation.buffer).name;
      target().outputs.push_back({free_output_name(name + "_out"), {value}});
      target().mutations.push_back({stored(mutation.buffer), value});
    }
  }

  std::string free_output_name(const std::string& wanted) {
    const auto taken = [&](const std::string& name) {
      return target().find_input(name) != nullptr ||
             std::ranges::any_of(target().outputs,
                                 [&](const ir::Output& output) { return output.name == name; });
    };
    std::string name = wanted;
    for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

  /// The weight itself, whose complex numbers are pairs.
  ir::ValueId stored(ir::ValueId weight) {
    return *target().find_weight(source().value(weight).name);
  }

  /// Conditions on what the data decides, each as a value that is true where the program is right.
  void add_checks() {
    for (const ir::Assumption& assumption : source().assumptions) {
      const ir::Place& place = source().place(assumption.place);
      target().assumptions.push_back(
          {check_of(assumption), true, target().add_place(place.where, place.module_path),
           assumption.what.empty() ? "the model branches on its data, and the program has "
                                     "the branch that the example took"
                                   : assumption.what});
    }
    for (const shape::Guard& guard : source().guards) {
      if (!shape::depends_on_data(guard.condition, source().dims)) continue;
      target().assumptions.push_back(
          {lower_.numbers().truth(guard.condition), true,
           target().add_place(guard.where, guard.module_path),
           fmt::format("the model reads its data, and the program is right where {}",
                       shape::print(guard.condition))});
    }
  }

  ir::ValueId check_of(const ir::Assumption& assumption) {
    const ir::ValueId assumed = value_of(assumption.value);
    const ir::ValueId value = lower_.reshape(assumed, {shape::Int(1)});
    const bool* truth = std::get_if<bool>(&assumption.expected);
    // A check is a value of its own, which gets a name of its own.
    if (truth != nullptr && *truth && lower_.dtype(value) == Dtype::boolean && value != assumed)
      return value;
    return lower_.compare("Equal", value,
                          lower_.number_of(expected_arg(assumption), lower_.dtype(value)));
  }

  static ir::Arg expected_arg(const ir::Assumption& assumption) {
    if (const bool* truth = std::get_if<bool>(&assumption.expected)) return {*truth};
    if (const auto* number = std::get_if<std::int64_t>(&assumption.expected))
      return {shape::Int(*number)};
    return {std::get<double>(assumption.expected)};
  }

  void add_input(ir::ValueId id) override {
    const ir::Value& input = source().value(id);
    const auto* type = std::get_if<ir::TensorType>(&input.type);
    const ir::TensorType own =
        type != nullptr ? *type : ir::TensorType{number_dtype(input.type), {}};
    const ir::ValueId value = target().add_input(input.name, as_stored(own));
    set_value(id, is_complex(own.dtype) ? lower_.from_pairs(value) : value);
    if (type == nullptr) {
      lower_.numbers().learn_number(std::get<ir::ScalarType>(input.type), value);
    } else {
      lower_.sources().learn_sizes(value, own.shape);
    }
  }

  void add_weight(ir::ValueId id) override {
    const ir::Value& weight = source().value(id);
    const ir::ValueId value =
        target().add_weight(weight.name, as_stored(weight.tensor()), weight.weight_kind);
    set_value(id, is_complex(weight.tensor().dtype) ? lower_.from_pairs(value) : value);
  }

  static Dtype number_dtype(const ir::Type& type) {
    const auto& symbol = std::get<ir::ScalarType>(type).symbol;
    if (std::holds_alternative<shape::Int>(symbol)) return Dtype::i64;
    return std::holds_alternative<shape::Real>(symbol) ? Dtype::f64 : Dtype::boolean;
  }

  void take_number(const ir::ScalarType& symbol, ir::ValueId value) override {
    lower_.numbers().learn_number(symbol, value);
  }

  /// A value that is no input, weight or constant and no output yet: ONNX wants each output to be
  /// the result of a node of its own.
  Value output_value(ir::ValueId id) {
    Value value = value_of(id);
    if (is_complex(lower_.dtype(value))) value = lower_.as_pairs(value);
    const bool made = target().value(value).origin == ir::Origin::node &&
                      target().node(target().value(value).producer).op != "onnx.Constant";
    if (made && outputs_.insert(value.index).second) return value;
    const Value copy = lower_.emit("Identity", {value}, {}, lower_.type(value));
    outputs_.insert(copy.index);
    return copy;
  }

  ops::onnx::Lower lower_;
  std::set<std::uint32_t> outputs_;
};

}  // namespace

ir::Graph lower_to_onnx(const ir::Graph& graph, const OnnxTarget& target) {
  return OnnxLowering(graph, target).run();
}

}  // namespace modelport::passes
