#include "ir/symbols.h"

#include "shape/tree.h"

namespace modelport::ir {

namespace {

void add(std::string_view name, Symbols& into) {
  if (!into.contains(name)) into.emplace(name);
}

void collect(const shape::Real& x, Mentions& into);

void collect(const shape::Tree& x, Mentions& into) {
  if (x.op == shape::Tree::Op::symbol) add(x.name, into.sizes);
  for (const shape::Tree& operand : x.operands) collect(operand, into);
  if (x.when) collect(*x.when, into);
  if (x.real) collect(*x.real, into);
}

void collect(const shape::Int& x, Mentions& into) {
  if (x.is_constant()) return;
  if (const auto symbol = x.as_symbol()) {
    add(*symbol, into.sizes);
  } else {
    collect(shape::tree(x), into);
  }
}

void collect(const shape::Real& x, Mentions& into) {
  const shape::Real::Node& node = x.node();
  if (node.op == shape::Real::Op::data) add(node.name, into.data);
  collect(node.integer, into);
  for (const shape::Real& operand : node.operands) collect(operand, into);
  if (node.when) collect(*node.when, into);
}

}  // namespace

void collect(const shape::Bool& condition, Mentions& into) {
  const shape::Bool::Node& node = condition.node();
  if (node.op == shape::Bool::Op::data) add(node.name, into.data);
  collect(node.difference, into);
  for (const shape::Real& real : node.reals) collect(real, into);
  for (const shape::Bool& operand : node.operands) collect(operand, into);
}

void collect(const Type& type, Mentions& into) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    for (const shape::Int& size : tensor->shape) collect(size, into);
  } else {
    std::visit([&](const auto& symbol) { collect(symbol, into); },
               std::get<ScalarType>(type).symbol);
  }
}

void collect(const Arg& arg, Mentions& into) {
  if (const auto* x = arg.get<shape::Int>()) collect(*x, into);
  if (const auto* x = arg.get<shape::Real>()) collect(*x, into);
  if (const auto* x = arg.get<shape::Bool>()) collect(*x, into);
  if (const auto* list = arg.get<ArgList>()) {
    for (const Arg& item : *list) collect(item, into);
  }
}

}  // namespace modelport::ir
