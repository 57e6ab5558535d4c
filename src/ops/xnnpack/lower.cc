#include "ops/xnnpack/lower.h"

#include <fmt/format.h>

#include <algorithm>

namespace modelport::ops::xnnpack {
namespace {

std::string text_of(const ir::Arg& arg) {
  if (const auto* id = arg.get<Value>()) return fmt::format("%{}", id->index);
  if (const auto* number = arg.get<Int>()) return shape::print(*number);
  if (const auto* number = arg.get<double>()) return fmt::format("{}f", *number);
  if (const auto* truth = arg.get<bool>()) return *truth ? "true" : "false";
  if (const auto* text = arg.get<std::string>()) return *text;
  std::string all = "[";
  if (const auto* list = arg.get<ir::ArgList>())
    for (const ir::Arg& item : *list) all += text_of(item) + ",";
  return all + "]";
}

Axes order_of(const ir::Node& transpose) {
  Axes order;
  for (const ir::Arg& axis : *transpose.find("perm")->get<ir::ArgList>())
    order.push_back(*axis.get<Int>()->constant());
  return order;
}

Shape moved(const Shape& shape, const Axes& order) {
  Shape result;
  for (const std::int64_t axis : order) result.push_back(shape[static_cast<std::size_t>(axis)]);
  return result;
}

/// Sizes are the same or one of them is 1, as the row's own rule made sure.
Shape broadcast(const Shape& a, const Shape& b) {
  if (a.size() < b.size()) return broadcast(b, a);
  Shape result = a;
  const std::size_t lead = a.size() - b.size();
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (result[lead + i] == Int(1)) result[lead + i] = b[i];
  }
  return result;
}

bool is_single(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Int& size) { return size == Int(1); });
}

bool in_order(const Axes& order) { return std::ranges::is_sorted(order); }

}  // namespace

Values Lower::leave(std::string_view why) {
  ++left_[{call().op().name, std::string(why)}];
  return {};
}

bool Lower::is_constant(Value x) const {
  const ir::Value& value = graph().value(x);
  if (is_weight(x)) return true;
  return value.origin == ir::Origin::node && graph().node(value.producer).op == "et.constant";
}

bool Lower::takes(Value x) const {
  if (x == kNoValue || dtype(x) != Dtype::f32 || rank(x) > kMostAxes) return false;
  return rank(x) > 0 || is_constant(x);
}

bool Lower::takes_result() const {
  const ir::TensorType& type = result();
  return type.dtype == Dtype::f32 && !type.shape.empty() && type.shape.size() <= kMostAxes;
}

Value Lower::real(std::string_view name) {
  const ir::Arg& arg = call().arg(name);
  if (const Value* value = arg.get<Value>()) return takes(*value) ? *value : kNoValue;
  if (const double* number = arg.get<double>()) return real(*number);
  if (const Int* number = arg.get<Int>(); number != nullptr && number->constant())
    return real(static_cast<double>(*number->constant()));
  return kNoValue;
}

Values Lower::lower_row(const OpDef& op) {
  if (!allowed_ || !std::holds_alternative<ir::TensorType>(results()[0]))
    return executorch::Lower::lower_row(op);
  if (is_filled(op.xnnpack)) {
    const Values values =
        lower_by(op.xnnpack, *this, [&](std::string_view name) { return pointwise(name); });
    if (!values.empty()) return values;
  } else if (!std::holds_alternative<Decompose>(op.executorch) && is_floating(result().dtype)) {
    leave("XNNPACK has no node for it");
  }
  return executorch::Lower::lower_row(op);
}

Values Lower::pointwise(std::string_view name) {
  if (!takes_result()) return leave("not f32 with one to six axes");
  const Value self = real("self");
  const bool is_pair = schema_of(call().op()).find("other") != nullptr;
  const Value other = is_pair ? real("other") : kNoValue;
  if (self == kNoValue || (is_pair && other == kNoValue))
    return leave("an operand is not f32 with one to six axes, nor a plain number");
  return {is_pair ? binary(name, self, other) : unary(name, self)};
}

Value Lower::node(std::string_view name, std::vector<ir::NamedArg> args, ir::TensorType type) {
  std::string key(name);
  for (const ir::NamedArg& named : args)
    key += fmt::format(" {}={}", named.name, text_of(named.arg));
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const Value made =
      executorch::Lower::node(fmt::format("xnn.{}", name), std::move(args), std::move(type))[0];
  return known_.emplace(std::move(key), made).first->second;
}

const ir::Node* Lower::transpose_of(Value x) const {
  const ir::Value& value = graph().value(x);
  if (value.origin != ir::Origin::node) return nullptr;
  const ir::Node& node = graph().node(value.producer);
  return node.op == "xnn.StaticTranspose" ? &node : nullptr;
}

/// Axes are moved after the node rather than before, so that what moves them to and fro around
/// convolutions meets and goes.
Value Lower::unary(std::string_view name, Value x, std::vector<ir::NamedArg> args) {
  if (const ir::Node* before = transpose_of(x)) {
    const Axes order = order_of(*before);
    return transposed(unary(name, *before->find("input")->get<Value>(), std::move(args)), order);
  }
  args.insert(args.begin(), {"input", {x}});
  return node(name, std::move(args), type(x));
}

Value Lower::binary(std::string_view name, Value a, Value b) {
  const ir::Node* left = transpose_of(a);
  const ir::Node* right = transpose_of(b);
  const auto from = [](const ir::Node* node) { return *node->find("input")->get<Value>(); };
  if (left != nullptr && right != nullptr && order_of(*left) == order_of(*right)) {
    const Axes order = order_of(*left);
    return transposed(binary(name, from(left), from(right)), order);
  }
  if (left != nullptr && is_single(shape(b)) && rank(b) <= 1) {
    const Axes order = order_of(*left);
    return transposed(binary(name, from(left), b), order);
  }
  if (right != nullptr && is_single(shape(a)) && rank(a) <= 1) {
    const Axes order = order_of(*right);
    return transposed(binary(name, a, from(right)), order);
  }
  return node(name, {{"input1", {a}}, {"input2", {b}}},
              {Dtype::f32, broadcast(shape(a), shape(b))});
}

Value Lower::clamped(Value x, double least, double most) {
  return unary("Clamp", x, {{"min", {least}}, {"max", {most}}});
}

Value Lower::transposed(Value x, const Axes& order) {
  if (in_order(order)) return x;
  if (const ir::Node* before = transpose_of(x)) {
    const Axes first = order_of(*before);
    Axes both;
    for (const std::int64_t axis : order) both.push_back(first[static_cast<std::size_t>(axis)]);
    return transposed(*before->find("input")->get<Value>(), both);
  }
  return node("StaticTranspose", {{"input", {x}}, {"perm", emit::int_list(order)}},
              {dtype(x), moved(shape(x), order)});
}

Value Lower::reshaped(Value x, const Shape& wanted) {
  if (shape(x) == wanted) return x;
  if (wanted.empty() || wanted.size() > kMostAxes) return kNoValue;
  std::vector<std::int64_t> sizes;
  for (const Int& size : wanted) {
    if (size == Int(0)) return kNoValue;
    sizes.push_back(size.constant().value_or(0));
  }
  if (std::ranges::count(sizes, 0) > 1) return kNoValue;
  return node("StaticReshape", {{"input", {x}}, {"new_shape", emit::int_list(sizes)}},
              {Dtype::f32, wanted});
}

Value Lower::sliced(Value x, std::int64_t axis, std::int64_t start, const Int& size) {
  Shape result = shape(x);
  if (start == 0 && result[static_cast<std::size_t>(axis)] == size) return x;
  result[static_cast<std::size_t>(axis)] = size;
  std::vector<std::int64_t> offsets(result.size(), 0), sizes(result.size(), 0);
  offsets[static_cast<std::size_t>(axis)] = start;
  sizes[static_cast<std::size_t>(axis)] = *size.constant();
  return node(
      "StaticSlice",
      {{"input", {x}}, {"offsets", emit::int_list(offsets)}, {"sizes", emit::int_list(sizes)}},
      {Dtype::f32, result});
}

Value Lower::row_sum(Value x, double factor) {
  Shape result = shape(x);
  result.back() = 1;
  return node("RowSum", {{"input", {x}}, {"factor", {factor}}}, {Dtype::f32, result});
}

Value Lower::product(Value a, Value b, bool b_transposed) {
  const Shape& left = shape(a);
  const Shape& right = shape(b);
  Shape result = broadcast({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2});
  result.push_back(left[left.size() - 2]);
  result.push_back(b_transposed ? right[right.size() - 2] : right.back());
  return node("BatchMatrixMultiply",
              {{"input1", {a}}, {"input2", {b}}, {"transposed", {b_transposed}}},
              {Dtype::f32, result});
}

Value Lower::softmax(Value x) { return node("Softmax", {{"input", {x}}}, type(x)); }

}  // namespace modelport::ops::xnnpack
