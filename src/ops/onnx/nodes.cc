// Typed ONNX nodes: constants, arithmetic, and tensors put into other shapes.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ops/onnx/kernels.h"
#include "ops/onnx/lower.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {

Values Lower::emit_many(std::string_view op, const Values& inputs, const Attributes& attributes,
                        std::vector<ir::TensorType> types) {
  std::vector<ir::NamedArg> args;
  if (!inputs.empty()) {
    ir::ArgList list;
    for (const Value input : inputs) list.push_back(input == kNoValue ? ir::Arg{} : ir::Arg{input});
    while (list.back().is_none()) list.pop_back();
    args.push_back({"inputs", {std::move(list)}});
  }
  for (const Attribute& attribute : attributes) args.push_back({attribute.name, attribute.value});
  std::vector<ir::Type> results(types.begin(), types.end());
  const bool other_domain = op.find('.') != std::string_view::npos;
  const ir::NodeId node =
      graph().add_node(other_domain ? std::string(op) : fmt::format("onnx.{}", op), std::move(args),
                       std::move(results), place());
  return graph().node(node).results;
}

Value Lower::emit(std::string_view op, const Values& inputs, const Attributes& attributes,
                  ir::TensorType type) {
  return emit_many(op, inputs, attributes, {std::move(type)})[0];
}

// --- constants -----------------------------------------------------------------------------------

Value Lower::add_constant(ir::TensorType type, std::vector<ir::NamedArg> contents) {
  Attributes attributes;
  for (ir::NamedArg& one : contents) attributes.push_back({one.name, std::move(one.arg)});
  return emit("Constant", {}, attributes, std::move(type));
}

Value Lower::number(double value, Dtype dtype) {
  if (is_complex(dtype))
    return make_complex(number(value, to_real(dtype)), number(0.0, to_real(dtype)));
  return Emitter::number(value, dtype);
}

Value Lower::number(std::int64_t value, Dtype dtype) {
  if (is_complex(dtype)) return number(static_cast<double>(value), dtype);
  return Emitter::number(value, dtype);
}

Value Lower::scalar(const Int& x) {
  if (const auto constant = x.constant()) return number(*constant, Dtype::i64);
  return squeeze(size(x), {0});
}

// --- arithmetic ----------------------------------------------------------------------------------

Shape Lower::broadcast_shape(const Shape& a, const Shape& b) const {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Int& size = result[lead + i];
    if (size.constant() == 1 || (!size.is_constant() && shorter[i].constant().value_or(1) != 1))
      size = shorter[i];
  }
  return result;
}

Value Lower::cast(Value x, Dtype to) {
  if (x == kNoValue) return x;
  const Dtype from = dtype(x);
  if (from == to) return x;
  if (is_complex(to)) {
    if (is_complex(from)) return from_pairs(cast(as_pairs(x), to_real(to)));
    const Value real = cast(x, to_real(to));
    return make_complex(real, filled(number(0.0, to_real(to)), shape(x)));
  }
  if (is_complex(from)) return cast(real_part(x), to);
  return emit("Cast", {x}, {{"to", {to}}}, {to, shape(x)});
}

Value Lower::unary(std::string_view op, Value x) {
  const Dtype own = dtype(x);
  if (const Dtype wide = kernel_dtype(op, own); wide != own)
    return cast(unary(op, cast(x, wide)), own);
  return emit(op, {x}, {}, type(x));
}

Value Lower::binary(std::string_view op, Value a, Value b) {
  const Dtype own = dtype(a);
  if (const Dtype wide = kernel_dtype(op, own); wide != own)
    return cast(binary(op, cast(a, wide), cast(b, wide)), own);
  return emit(op, {a, b}, {}, {own, broadcast_shape(shape(a), shape(b))});
}

Value Lower::compare(std::string_view op, Value a, Value b) {
  const Dtype own = dtype(a);
  if (const Dtype wide = kernel_dtype(op, own); wide != own)
    return compare(op, cast(a, wide), cast(b, wide));
  return emit(op, {a, b}, {}, {Dtype::boolean, broadcast_shape(shape(a), shape(b))});
}

Value Lower::logical_not(Value x) { return unary("Not", x); }

Value Lower::where(Value condition, Value a, Value b) {
  const Dtype own = dtype(a);
  if (is_complex(own)) {
    return from_pairs(where(unsqueeze(condition, {rank(condition)}), as_pairs(a), as_pairs(b)));
  }
  // onnxruntime chooses among fewer types than it moves.
  if (const Dtype wide = kernel_dtype("Where", own); wide != own)
    return cast(where(condition, cast(a, wide), cast(b, wide)), own);
  const Shape shape =
      broadcast_shape(this->shape(condition), broadcast_shape(this->shape(a), this->shape(b)));
  return emit("Where", {condition, a, b}, {}, {dtype(a), shape});
}

Value Lower::reduce(std::string_view op, Value x, const std::vector<std::int64_t>& axes,
                    bool keepdim) {
  if (axes.empty()) return x;
  const Dtype own = dtype(x);
  if (const Dtype wide = kernel_dtype(op, own); wide != own)
    return cast(reduce(op, cast(x, wide), axes, keepdim), own);
  const ir::TensorType type{own, ops::reduce(shape(x), axes, keepdim)};
  const Attribute keep{"keepdims", {Int(keepdim ? 1 : 0)}};
  // Axes were attributes before opset 18, but for ReduceSum.
  if (opset() < 18 && op != "ReduceSum")
    return emit(op, {x}, {{"axes", int_list(axes)}, keep}, type);
  return emit(op, {x, ints(axes)}, {keep}, type);
}

Value Lower::matmul(Value a, Value b) {
  const Dtype own = dtype(a);
  if (const Dtype wide = kernel_dtype("MatMul", own); wide != own)
    return cast(matmul(cast(a, wide), cast(b, wide)), own);
  const Shape& left = shape(a);
  const Shape& right = shape(b);
  const auto batch = [](const Shape& s) {
    return Shape(s.begin(), s.size() < 2 ? s.begin() : s.end() - 2);
  };
  Shape result = broadcast_shape(batch(left), batch(right));
  if (left.size() > 1) result.push_back(left[left.size() - 2]);
  if (right.size() > 1) result.push_back(right.back());
  // A sum of nothing is 0; onnxruntime neither loads nor runs all products of that kind.
  if (!left.empty() && left.back().constant() == 0) return filled(number(0.0, own), result);
  // Nor does it multiply no rows at all with a vector.
  if (right.size() == 1 && left.size() > 1 && !surely_at_least(left[left.size() - 2], 1))
    return squeeze(matmul(a, unsqueeze(b, {1})), {rank(a) - 1});
  const Int summed = left.empty() ? Int(1) : left.back();
  const Value product = emit("MatMul", {a, b}, {}, {dtype(a), std::move(result)});
  if (summed.constant() || surely_at_least(summed, 1)) return product;
  // Where it does, it leaves the result as the memory was.
  // Its size is read from the operand: nothing else may have it yet where the data decide it.
  const std::int64_t last = rank(a) - 1;
  const Value size = emit("Shape", {a}, {{"start", {Int(last)}}, {"end", {Int(last + 1)}}},
                          {Dtype::i64, {Int(1)}});
  const Value nothing = compare("Equal", squeeze(size, {0}), number(std::int64_t{0}, Dtype::i64));
  return where(nothing, number(0.0, own), product);
}

// --- shapes --------------------------------------------------------------------------------------

Value Lower::reshape(Value x, const Shape& target) {
  if (shape(x) == target) return x;
  if (is_complex(dtype(x))) {
    Shape pairs = target;
    pairs.push_back(2);
    return from_pairs(reshape(as_pairs(x), pairs));
  }
  const ir::TensorType type{dtype(x), target};
  // 0 keeps the size at its place and -1 is filled in, so that no size has to be computed.
  std::vector<std::int64_t> plain;
  std::size_t unknown = 0;
  bool surely_filled = true;
  bool empty = false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto constant = target[i].constant();
    const bool kept = !constant && i < shape(x).size() && shape(x)[i] == target[i];
    empty = empty || constant == 0;
    if (!constant && !kept) ++unknown;
    surely_filled = surely_filled && (constant || surely_at_least(target[i], 1));
    plain.push_back(constant ? *constant : kept ? 0 : -1);
  }
  if (!empty && (unknown == 0 || (unknown == 1 && surely_filled)))
    return emit("Reshape", {x, ints(plain)}, {}, type);
  if (!empty && surely_filled) {
    // Of several unknown sizes, the one that takes most to compute is filled in.
    Shape asked = target;
    std::optional<std::size_t> hole;
    for (std::size_t i = 0; i < target.size(); ++i) {
      asked[i] = plain[i] == -1 ? target[i] : Int(plain[i]);
      if (plain[i] == -1 && (!hole || (asked[*hole].as_symbol() && !target[i].as_symbol())))
        hole = i;
    }
    asked[*hole] = -1;
    return emit("Reshape", {x, sizes(asked)}, {}, type);
  }
  return emit("Reshape", {x, sizes(target)}, {{"allowzero", {Int(1)}}}, type);
}

Value Lower::expand(Value x, const Shape& target) {
  if (shape(x) == target) return x;
  if (dtype(x) == Dtype::bf16) return cast(expand(cast(x, Dtype::f32), target), Dtype::bf16);
  if (is_complex(dtype(x))) {
    Shape pairs = target;
    pairs.push_back(2);
    return from_pairs(expand(as_pairs(x), pairs));
  }
  const std::size_t lead = target.size() - shape(x).size();
  // onnxruntime takes an axis expanded to no elements for one that is left alone: it is cut off.
  for (std::size_t i = lead; i < target.size(); ++i) {
    if (target[i] == Int(0) && !(shape(x)[i - lead] == Int(0)))
      return expand(slice(x, static_cast<std::int64_t>(i - lead), 0, 0), target);
  }
  // 1 keeps a size that is there already.
  Shape asked = target;
  for (std::size_t i = lead; i < target.size(); ++i) {
    if (shape(x)[i - lead] == target[i]) asked[i] = 1;
  }
  return emit("Expand", {x, sizes(asked)}, {}, {dtype(x), target});
}

Value Lower::transpose(Value x, const std::vector<std::int64_t>& order) {
  if (std::ranges::is_sorted(order)) return x;
  if (is_complex(dtype(x))) {
    std::vector<std::int64_t> pairs = order;
    pairs.push_back(rank(x));
    return from_pairs(transpose(as_pairs(x), pairs));
  }
  Shape result;
  for (const std::int64_t axis : order) result.push_back(shape(x)[static_cast<std::size_t>(axis)]);
  return emit("Transpose", {x}, {{"perm", int_list(order)}}, {dtype(x), std::move(result)});
}

Value Lower::swap_axes(Value x, std::int64_t a, std::int64_t b) {
  std::vector<std::int64_t> order(shape(x).size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return transpose(x, order);
}

Value Lower::unsqueeze(Value x, const std::vector<std::int64_t>& axes) {
  if (axes.empty()) return x;
  if (is_complex(dtype(x))) return from_pairs(unsqueeze(as_pairs(x), axes));
  Shape result = shape(x);
  std::vector<std::int64_t> sorted = axes;
  std::ranges::sort(sorted);
  for (const std::int64_t axis : sorted) result.insert(result.begin() + axis, Int(1));
  return emit("Unsqueeze", {x, ints(sorted)}, {}, {dtype(x), std::move(result)});
}

Value Lower::squeeze(Value x, const std::vector<std::int64_t>& axes) {
  if (axes.empty()) return x;
  if (is_complex(dtype(x))) return from_pairs(squeeze(as_pairs(x), axes));
  Shape result;
  for (std::int64_t i = 0; i < rank(x); ++i) {
    if (std::ranges::find(axes, i) == axes.end())
      result.push_back(shape(x)[static_cast<std::size_t>(i)]);
  }
  return emit("Squeeze", {x, ints(axes)}, {}, {dtype(x), std::move(result)});
}

Value Lower::slice(Value x, std::int64_t axis, const Int& start, const Int& end, const Int& step) {
  if (is_complex(dtype(x))) return from_pairs(slice(as_pairs(x), axis, start, end, step));
  const Int& whole = shape(x)[static_cast<std::size_t>(axis)];
  if (start == Int(0) && end == whole && step == Int(1)) return x;
  Shape result = shape(x);
  result[static_cast<std::size_t>(axis)] =
      start.is_constant() && end.is_constant() && (*start.constant() < 0 || *end.constant() < 0)
          ? slice_length(call(), whole, start, end, step)
          : shape::ceil_div(end - start, step);
  // An end at the end of the axis needs no size.
  const Value stop = end == whole ? ints({INT64_MAX}) : size(end);
  Values inputs{x, size(start), stop, ints({axis})};
  if (!(step == Int(1))) inputs.push_back(size(step));
  return emit("Slice", inputs, {}, {dtype(x), std::move(result)});
}

Value Lower::concat(const Values& parts, std::int64_t axis) {
  if (parts.size() == 1) return parts[0];
  if (is_complex(dtype(parts[0]))) {
    Values pairs;
    for (const Value part : parts) pairs.push_back(as_pairs(part));
    return from_pairs(concat(pairs, axis));
  }
  Shape result = shape(parts[0]);
  const auto at = static_cast<std::size_t>(axis);
  for (std::size_t i = 1; i < parts.size(); ++i) result[at] += shape(parts[i])[at];
  return emit("Concat", parts, {{"axis", {Int(axis)}}}, {dtype(parts[0]), std::move(result)});
}

Value Lower::gather(Value x, Value indices, std::int64_t axis) {
  if (is_complex(dtype(x))) return from_pairs(gather(as_pairs(x), indices, axis));
  Shape result(shape(x).begin(), shape(x).begin() + axis);
  result.insert(result.end(), shape(indices).begin(), shape(indices).end());
  result.insert(result.end(), shape(x).begin() + axis + 1, shape(x).end());
  return emit("Gather", {x, indices}, {{"axis", {Int(axis)}}}, {dtype(x), std::move(result)});
}

Value Lower::range(const Int& n) {
  return emit("Range",
              {number(std::int64_t{0}, Dtype::i64), scalar(n), number(std::int64_t{1}, Dtype::i64)},
              {}, {Dtype::i64, {n}});
}

Value Lower::filled(Value value, const Shape& shape) {
  if (shape.empty()) return value;
  return expand(value, shape);
}

// --- complex numbers -----------------------------------------------------------------------------

Value Lower::real_part(Value x) {
  return gather(as_pairs(x), number(std::int64_t{0}, Dtype::i64), rank(x));
}
Value Lower::imaginary_part(Value x) {
  return gather(as_pairs(x), number(std::int64_t{1}, Dtype::i64), rank(x));
}
Value Lower::make_complex(Value real, Value imaginary) {
  const std::int64_t last = rank(real);
  return from_pairs(concat({unsqueeze(real, {last}), unsqueeze(imaginary, {last})}, last));
}

}  // namespace modelport::ops::onnx
