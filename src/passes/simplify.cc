// Nodes that change nothing, and pairs of nodes that one node or none can do.
#include <algorithm>
#include <array>

#include "passes/constants.h"
#include "passes/onnx_passes.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

/// Whether every value of `from` is a value of `to`.
bool widens(Dtype from, Dtype to) {
  if (from == to || from == Dtype::boolean) return true;
  if (is_floating(from)) return is_floating(to) && byte_size(to) > byte_size(from);
  if (is_integral(to))
    return byte_size(to) > byte_size(from) && (is_signed(to) || !is_signed(from));
  return is_floating(to) && byte_size(to) > 2 && byte_size(from) * 2 <= byte_size(to);
}

class Simplifier {
 public:
  explicit Simplifier(ir::Graph& graph) : graph_(graph), replacements_(graph) {
    for (const ir::Output& output : graph.outputs)
      outputs_.push_back(*output.value.get<ir::ValueId>());
    std::ranges::sort(outputs_);
  }

  void run() {
    std::vector<bool> keep(graph_.nodes().size(), true);
    for (std::uint32_t i = 0; i < keep.size(); ++i) {
      ir::Node& node = graph_.node({i});
      replacements_.apply(node);
      if (node.results.size() != 1) continue;
      const ir::ValueId by = same_as(node);
      if (by == ir::ValueId{}) continue;
      // An output is the result of a node of its own.
      if (std::ranges::binary_search(outputs_, node.results[0])) continue;
      replacements_.replace(node.results[0], by);
      keep[i] = false;
    }
    replacements_.apply_to_outputs(graph_);
    graph_.keep_nodes(keep);
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }
  const ir::Node* made_by(ir::ValueId id, std::string_view op) const {
    if (id == ir::ValueId{} || graph_.value(id).origin != ir::Origin::node) return nullptr;
    const ir::Node& node = graph_.node(graph_.value(id).producer);
    return node.op == op ? &node : nullptr;
  }
  static void set_input(ir::Node& node, std::size_t index, ir::ValueId by) {
    for (ir::NamedArg& named : node.args) {
      if (named.name == "inputs") std::get<ir::ArgList>(named.arg.value)[index] = {by};
    }
  }
  static void set(ir::Node& node, std::string_view name, ir::Arg value) {
    for (ir::NamedArg& named : node.args) {
      if (named.name == name) named.arg = std::move(value);
    }
  }

  /// The value that the node's result can be replaced by; ValueId{} where there is none. May
  /// shorten what the node reads from.
  ir::ValueId same_as(ir::Node& node) {
    const std::string_view op = node.op;
    if (op == "onnx.Identity") return input_of(node, 0);
    if (op == "onnx.Cast") return cast(node);
    if (op == "onnx.Transpose") return transpose(node);
    if (op == "onnx.Reshape") return reshape(node);
    if (op == "onnx.Unsqueeze" || op == "onnx.Squeeze") return axes(node);
    if (op == "onnx.Expand" && type(input_of(node, 0)) == type(node.results[0]))
      return input_of(node, 0);
    if (op == "onnx.Not") {
      const ir::Node* inner = made_by(input_of(node, 0), "onnx.Not");
      return inner == nullptr ? ir::ValueId{} : input_of(*inner, 0);
    }
    return neutral(node);
  }

  ir::ValueId cast(ir::Node& node) {
    const ir::ValueId x = input_of(node, 0);
    const Dtype to = type(node.results[0]).dtype;
    if (type(x).dtype == to) return x;
    const ir::Node* inner = made_by(x, "onnx.Cast");
    if (inner == nullptr) return {};
    const ir::ValueId first = input_of(*inner, 0);
    if (!widens(type(first).dtype, type(x).dtype)) return {};
    if (type(first).dtype == to) return first;
    set_input(node, 0, first);
    return {};
  }

  ir::ValueId transpose(ir::Node& node) {
    const ir::Node* inner = made_by(input_of(node, 0), "onnx.Transpose");
    if (inner == nullptr) return {};
    const std::vector<std::int64_t> first = int_list_of(*inner->find("perm"));
    std::vector<std::int64_t> both;
    for (const std::int64_t axis : int_list_of(*node.find("perm")))
      both.push_back(first[static_cast<std::size_t>(axis)]);
    if (std::ranges::is_sorted(both)) return input_of(*inner, 0);
    ir::ArgList order;
    for (const std::int64_t axis : both) order.push_back({shape::Int(axis)});
    const ir::ValueId x = input_of(*inner, 0);
    set_input(node, 0, x);
    set(node, "perm", {std::move(order)});
    return {};
  }

  ir::ValueId reshape(ir::Node& node) {
    const ir::ValueId x = input_of(node, 0);
    if (type(x) == type(node.results[0])) return x;
    const ir::Node* inner = made_by(x, "onnx.Reshape");
    if (inner == nullptr) return {};
    const ir::ValueId first = input_of(*inner, 0);
    if (type(first) == type(node.results[0])) return first;
    // A 0 copies a size of what is reshaped: only then it matters what that was.
    const auto target = constant_of(graph_, input_of(node, 1));
    if (target && std::ranges::find(target->integers, 0) != target->integers.end() &&
        node.find("allowzero") == nullptr)
      return {};
    set_input(node, 0, first);
    return {};
  }

  /// Unsqueeze and Squeeze of the same axes cancel.
  ir::ValueId axes(const ir::Node& node) const {
    const bool opens = node.op == "onnx.Unsqueeze";
    const ir::Node* inner = made_by(input_of(node, 0), opens ? "onnx.Squeeze" : "onnx.Unsqueeze");
    if (inner == nullptr || input_of(node, 1) != input_of(*inner, 1)) return {};
    return type(input_of(*inner, 0)) == type(node.results[0]) ? input_of(*inner, 0) : ir::ValueId{};
  }

  /// x + 0, x - 0, x * 1, x / 1, x and true, x or false.
  ir::ValueId neutral(const ir::Node& node) const {
    struct Neutral {
      std::string_view op;
      double number;
      bool either_side;
    };
    static constexpr std::array kNeutral{
        Neutral{"onnx.Add", 0, true},  Neutral{"onnx.Sub", 0, false}, Neutral{"onnx.Mul", 1, true},
        Neutral{"onnx.Div", 1, false}, Neutral{"onnx.And", 1, true},  Neutral{"onnx.Or", 0, true}};
    const auto row = std::ranges::find(kNeutral, node.op, &Neutral::op);
    if (row == kNeutral.end()) return {};
    for (std::size_t side = row->either_side ? 0 : 1; side < 2; ++side) {
      const auto number = constant_of(graph_, input_of(node, side));
      const ir::ValueId x = input_of(node, 1 - side);
      // -0.0 + 0.0 is 0.0: the only sum with zero that changes a number, and it compares equal.
      if (number && number->all(row->number) && type(x) == type(node.results[0])) return x;
    }
    return {};
  }

  ir::Graph& graph_;
  Replacements replacements_;
  std::vector<ir::ValueId> outputs_;
};

}  // namespace

void simplify(ir::Graph& graph) { Simplifier(graph).run(); }

}  // namespace modelport::passes
