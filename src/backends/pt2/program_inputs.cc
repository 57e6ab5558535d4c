// Weights, inputs, and the tests that inputs must pass.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "backends/pt2/program_writer.h"
#include "base/error.h"

namespace modelport::pt2 {
namespace {

std::string_view prefix(ir::WeightKind kind) {
  switch (kind) {
    case ir::WeightKind::parameter:
      return "p_";
    case ir::WeightKind::buffer:
    case ir::WeightKind::buffer_not_saved:
      return "b_";
    case ir::WeightKind::constant:
      return "c_";
  }
  throw InternalError("an unknown kind of weight");
}

std::string weight_spec(const ir::Value& weight, std::string_view name) {
  std::string arg = "{\"name\": ";
  append_string(arg, name);
  arg += '}';
  std::string quoted;
  append_string(quoted, weight.name);
  switch (weight.weight_kind) {
    case ir::WeightKind::parameter:
      return fmt::format("{{\"parameter\": {{\"arg\": {}, \"parameter_name\": {}}}}}", arg, quoted);
    case ir::WeightKind::buffer:
    case ir::WeightKind::buffer_not_saved:
      return fmt::format("{{\"buffer\": {{\"arg\": {}, \"buffer_name\": {}, \"persistent\": {}}}}}",
                         arg, quoted, weight.weight_kind == ir::WeightKind::buffer);
    case ir::WeightKind::constant:
      return fmt::format("{{\"tensor_constant\": {{\"arg\": {}, \"tensor_constant_name\": {}}}}}",
                         arg, quoted);
  }
  throw InternalError("an unknown kind of weight");
}

void append_item(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

std::string where_text(const SourceLine& where) {
  return where.known() ? fmt::format(" ({}:{})", where.file, where.line) : "";
}

}  // namespace

void ProgramWriter::add_weights() {
  // Torch puts parameters first, then buffers, then constants.
  constexpr std::array kOrder{ir::WeightKind::parameter, ir::WeightKind::buffer,
                              ir::WeightKind::buffer_not_saved, ir::WeightKind::constant};
  for (const ir::WeightKind kind : kOrder) {
    for (const ir::ValueId id : graph_.weights) {
      const ir::Value& weight = graph_.value(id);
      if (weight.weight_kind != kind) continue;
      std::string name = text_.names().claim(std::string(prefix(kind)) + weight.name);
      text_.add_tensor(name, tensor_type_json(weight.tensor(), symbols_, text_.device()));
      std::string arg;
      append_tensor_argument(arg, name);
      append_item(inputs_, arg);
      append_item(input_specs_, weight_spec(weight, name));
      names_[id.index] = std::move(name);
    }
  }
}

void ProgramWriter::add_inputs() {
  if (request_.signature.inputs.empty()) {
    for (const ir::ValueId id : graph_.inputs) add_input(id);
    return;
  }
  for (const signature::Leaf& leaf : request_.signature.inputs) {
    if (!leaf.in_graph) {
      add_constant(leaf);
      continue;
    }
    const ir::ValueId* id = graph_.find_input(leaf.name);
    if (id == nullptr)
      throw InternalError("the signature names an input that the graph lacks: " + leaf.name);
    add_input(*id);
  }
}

void ProgramWriter::add_input(ir::ValueId id) {
  name_result(id, text_.names().claim(graph_.value(id).name));
  std::string arg;
  arguments_.append(arg, {id}, "");
  append_item(inputs_, arg);
  append_item(input_specs_, fmt::format("{{\"user_input\": {{\"arg\": {}}}}}", arg));
}

void ProgramWriter::add_constant(const signature::Leaf& leaf) {
  std::string value;
  if (const auto* text = std::get_if<std::string>(&leaf.constant.value)) {
    value = "{\"as_string\": ";
    append_string(value, *text);
    value += '}';
  } else if (const auto* real = std::get_if<double>(&leaf.constant.value)) {
    SymOperand{real_expr(*real), ""}.append_item(value);
  } else if (const auto* integer = std::get_if<std::int64_t>(&leaf.constant.value)) {
    SymOperand{integer_expr(*integer), ""}.append_item(value);
  } else if (const auto* truth = std::get_if<bool>(&leaf.constant.value)) {
    SymOperand{boolean_expr(*truth), ""}.append_item(value);
  } else {
    value = "{\"as_none\": true}";
  }
  append_item(inputs_, value);
  append_item(input_specs_,
              fmt::format("{{\"constant_input\": {{\"name\": \"{}\", \"value\": {}}}}}",
                          text_.names().fresh(leaf.name), value));
}

/// What torch's own test of inputs leaves out: sizes that are computed from symbols, a least size
/// of two, and a range where it settled for a size of one.
void ProgramWriter::add_input_checks() {
  for (const ir::ValueId id : graph_.inputs) {
    const ir::Value& input = graph_.value(id);
    const auto* tensor = std::get_if<ir::TensorType>(&input.type);
    if (tensor == nullptr) continue;
    for (std::size_t axis = 0; axis < tensor->shape.size(); ++axis) {
      const shape::Int& size = tensor->shape[axis];
      numbers_.require_size(
          names_[id.index], static_cast<std::int64_t>(axis), size,
          fmt::format("Guard failed: {}.shape[{}] == {}", input.name, axis, shape::print(size)));
    }
  }
  for (const auto& [name, symbol] : symbols_.all()) {
    const SymExpr tree = symbol_expr(name, symbol.kind);
    if (symbol.from_data || !numbers_.knows(tree)) continue;
    const auto [least, most] = symbol.range;
    // torch takes a range from 1 or 2 on for one that has no lower end, and tests neither.
    if (least >= 1 && least <= 2) {
      numbers_.require(make_expr(SymOp::ge, {tree, integer_expr(least)}),
                       fmt::format("Guard failed: {} >= {}", name, least));
    }
    if (symbols_.hint_of(name) < 2 && most < shape::Range::kUnbounded) {
      numbers_.require(make_expr(SymOp::le, {tree, integer_expr(most)}),
                       fmt::format("Guard failed: {} <= {}", name, most));
    }
  }
}

void ProgramWriter::add_guards() {
  for (std::size_t i = 0; i < graph_.guards.size(); ++i) {
    const shape::Guard& guard = graph_.guards[i];
    if (guard_written_[i] || guard.effect != shape::Guard::Effect::kept) continue;
    const SymExpr tree = to_tree(guard.condition, symbols_.kinds());
    if (!numbers_.knows(tree)) continue;  // on what the data decides: again at the end
    numbers_.require(tree, fmt::format("Guard failed: {}{}", shape::print(guard.condition),
                                       where_text(guard.where)));
    guard_written_[i] = true;
  }
}

/// The program stops where a branch of the model would have gone the other way.
void ProgramWriter::add_assumptions() {
  for (const ir::Assumption& assumption : graph_.assumptions) {
    const SymExpr expected = std::visit(
        [](const auto& x) {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, bool>) return boolean_expr(x);
          if constexpr (std::is_same_v<T, double>) return real_expr(x);
          if constexpr (std::is_same_v<T, std::int64_t>) return integer_expr(x);
        },
        assumption.expected);
    if (expected.kind == SymKind::real && std::isnan(expected.real)) continue;
    const ir::TensorType type{Dtype::boolean, graph_.value(assumption.value).tensor().shape};
    NodeText compare;
    compare.target = "torch.ops.aten.eq.Scalar";
    compare.name = text_.names().fresh("eq");
    std::string arg;
    append_tensor_argument(arg, names_[assumption.value.index]);
    append_input(compare.inputs, "self", arg);
    std::string number;
    SymOperand{expected, ""}.append_item(number);
    append_input(compare.inputs, "other", number);
    append_tensor_argument(compare.outputs, compare.name);
    text_.add_tensor(compare.name, tensor_type_json(type, symbols_, text_.device()));
    text_.add(compare);

    NodeText stop;
    stop.target = "torch.ops.aten._assert_async.msg";
    stop.name = text_.names().fresh("_assert_async");
    append_input(stop.inputs, "self", compare.outputs);
    std::string message = "{\"as_string\": ";
    append_string(
        message,
        "The model branches on its data, and these inputs take the branch that was not captured" +
            where_text(graph_.place(assumption.place).where));
    message += '}';
    append_input(stop.inputs, "assert_msg", message);
    text_.add(stop);
  }
}

}  // namespace modelport::pt2
