// What a target makes of an operator: one cell of a row.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace modelport::ops {

namespace emit {
class Emitter;
}
namespace onnx {
class Lower;
}
namespace executorch {
class Lower;
}
namespace xnnpack {
class Lower;
}

using Value = ir::ValueId;
using Values = std::vector<Value>;
/// An optional input that is left out.
inline constexpr Value kNoValue{};

/// One operator of the target, on the operands as they come. For ONNX: on the tensor operands in
/// the order of the schema, all of the result's type. For ExecuTorch: the kernel by its full name.
/// For XNNPACK: a node on `self`, or on `self` and `other`.
struct Direct {
  std::string_view op;
  bool promoted = false;  // tensor operands are cast to the result's type first
};
/// Nodes of the target, written against what builds them.
template <class Target>
struct Custom {
  Values (*lower)(Target& target);  // one value for each result
};
/// Other rows of the table, so that it serves every target that has those.
struct Decompose {
  Value (*one)(emit::Emitter& e) = nullptr;
  Values (*many)(emit::Emitter& e) = nullptr;  // instead, for several results
};
/// Why there is no way: it ends the message that users get.
struct Refuse {
  std::string_view reason;
};

template <class Target>
using Cell = std::variant<std::monostate, Direct, Custom<Target>, Decompose, Refuse>;
using OnnxCell = Cell<onnx::Lower>;
using ExecutorchCell = Cell<executorch::Lower>;
/// What XNNPACK, a part of ExecuTorch's runtime, takes over. Its cells may leave a call to the
/// kernels of the cell beside it.
using XnnpackCell = Cell<xnnpack::Lower>;

constexpr Direct direct(std::string_view op) { return {op}; }
/// A kernel of ExecuTorch that does not promote its operands itself.
constexpr Direct promoted(std::string_view op) { return {op, true}; }
template <class Target>
constexpr Custom<Target> custom(Values (*lower)(Target& target)) {
  return {lower};
}
constexpr Decompose decompose(Value (*lower)(emit::Emitter& e)) { return {.one = lower}; }
constexpr Decompose decompose(Values (*lower)(emit::Emitter& e)) { return {.many = lower}; }
constexpr Refuse refuse(std::string_view reason) { return {reason}; }

template <class Target>
constexpr bool is_filled(const Cell<Target>& cell) {
  return !std::holds_alternative<std::monostate>(cell);
}

}  // namespace modelport::ops
