#include "passes/constants.h"

namespace modelport::passes {

bool Constant::all(double number) const {
  if (size() == 0) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if (at(i) != number) return false;
  }
  return true;
}

std::vector<std::int64_t> int_list_of(const ir::Arg& arg) {
  std::vector<std::int64_t> numbers;
  for (const ir::Arg& item : *arg.get<ir::ArgList>())
    numbers.push_back(item.get<shape::Int>()->constant().value());
  return numbers;
}

std::optional<Constant> constant_of(const ir::Graph& graph, ir::ValueId id) {
  if (id == ir::ValueId{} || graph.value(id).origin != ir::Origin::node) return std::nullopt;
  const ir::Node& node = graph.node(graph.value(id).producer);
  if (node.op != "onnx.Constant") return std::nullopt;
  Constant constant{.dtype = graph.value(id).tensor().dtype,
                    .shape = int_list_of(*node.find("shape")),
                    .integers = {},
                    .reals = {}};
  for (const ir::Arg& item : *node.find("values")->get<ir::ArgList>()) {
    if (const double* real = item.get<double>()) {
      constant.reals.push_back(*real);
    } else {
      constant.integers.push_back(item.get<shape::Int>()->constant().value());
    }
  }
  return constant;
}

void make_constant(ir::Node& node, const Constant& constant) {
  ir::ArgList shape;
  for (const std::int64_t size : constant.shape) shape.push_back({shape::Int(size)});
  ir::ArgList values;
  for (const std::int64_t number : constant.integers) values.push_back({shape::Int(number)});
  for (const double number : constant.reals) values.push_back({number});
  node.op = "onnx.Constant";
  node.args = {
      {"dtype", {constant.dtype}}, {"shape", {std::move(shape)}}, {"values", {std::move(values)}}};
}

}  // namespace modelport::passes
