// x * cos + rotate_half(x) * sin, as models write it, becomes ONNX's RotaryEmbedding.
#include <algorithm>
#include <map>
#include <optional>

#include "passes/constants.h"
#include "passes/onnx_passes.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

struct Rotation {
  ir::ValueId x;    // [batch, heads, length, size]
  ir::ValueId cos;  // [1 or batch, length, size], its two halves equal
  ir::ValueId sin;
};

class RotaryFinder {
 public:
  explicit RotaryFinder(const ir::Graph& graph) : graph_(graph) {}

  std::optional<Rotation> find(const ir::Node& sum) const {
    if (sum.op != "onnx.Add") return std::nullopt;
    const ir::Node* a = made_by(input_of(sum, 0), "onnx.Mul");
    const ir::Node* b = made_by(input_of(sum, 1), "onnx.Mul");
    if (a == nullptr || b == nullptr) return std::nullopt;
    for (const auto& [straight, turned] : {std::pair{a, b}, std::pair{b, a}}) {
      for (std::size_t side = 0; side < 2; ++side) {
        const auto x = half_turned(input_of(*turned, side));
        if (!x) continue;
        const auto cos = other_factor(*straight, *x);
        const auto cos_table = cos ? table(*cos) : std::nullopt;
        const auto sin_table = table(input_of(*turned, 1 - side));
        if (cos_table && sin_table && fits(*x, *cos_table, *sin_table))
          return Rotation{*x, *cos_table, *sin_table};
      }
    }
    return std::nullopt;
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }
  /// The node that made the value, if it is a call of `op`.
  const ir::Node* made_by(ir::ValueId id, std::string_view op) const {
    if (id == ir::ValueId{} || graph_.value(id).origin != ir::Origin::node) return nullptr;
    const ir::Node& node = graph_.node(graph_.value(id).producer);
    return node.op == op ? &node : nullptr;
  }
  static std::optional<ir::ValueId> other_factor(const ir::Node& product, ir::ValueId x) {
    if (input_of(product, 0) == x) return input_of(product, 1);
    if (input_of(product, 1) == x) return input_of(product, 0);
    return std::nullopt;
  }
  std::optional<std::int64_t> number(ir::ValueId id) const {
    const auto constant = constant_of(graph_, id);
    if (!constant || constant->integers.size() != 1) return std::nullopt;
    return constant->integers[0];
  }

  /// x where the value is concat(-x[half:], x[:half]) along the last axis.
  std::optional<ir::ValueId> half_turned(ir::ValueId id) const {
    const ir::Node* join = made_by(id, "onnx.Concat");
    if (join == nullptr || input_count(*join) != 2) return std::nullopt;
    const ir::Node* negated = made_by(input_of(*join, 0), "onnx.Neg");
    const ir::Node* high =
        negated == nullptr ? nullptr : made_by(input_of(*negated, 0), "onnx.Slice");
    const ir::Node* low = made_by(input_of(*join, 1), "onnx.Slice");
    if (high == nullptr || low == nullptr) return std::nullopt;
    const ir::ValueId x = input_of(*high, 0);
    if (x != input_of(*low, 0) || type(x).shape.size() != 4 || type(id).shape != type(x).shape)
      return std::nullopt;
    const auto size = type(x).shape[3].constant();
    if (!size || *size % 2 != 0) return std::nullopt;
    const std::int64_t half = *size / 2;
    const auto last_axis = [&](const ir::Node& slice) {
      const auto axis = number(input_of(slice, 3));
      return axis && (*axis == 3 || *axis == -1) && input_count(slice) == 4;
    };
    const bool cut = number(input_of(*high, 1)) == half && number(input_of(*high, 2)) >= *size &&
                     number(input_of(*low, 1)) == 0 && number(input_of(*low, 2)) == half;
    return cut && last_axis(*high) && last_axis(*low) ? std::optional(x) : std::nullopt;
  }

  /// The [batch, length, size] table under an axis for the heads, if its halves are equal.
  std::optional<ir::ValueId> table(ir::ValueId id) const {
    const ir::Node* opened = made_by(id, "onnx.Unsqueeze");
    if (opened == nullptr || number(input_of(*opened, 1)) != 1) return std::nullopt;
    const ir::ValueId result = input_of(*opened, 0);
    if (type(result).shape.size() != 3 || !halves_are_equal(result)) return std::nullopt;
    return result;
  }

  bool halves_are_equal(ir::ValueId id) const {
    for (int steps = 0; steps < 6; ++steps) {
      if (id == ir::ValueId{} || graph_.value(id).origin != ir::Origin::node) return false;
      const ir::Node& node = graph_.node(graph_.value(id).producer);
      const bool pointwise =
          node.op == "onnx.Cos" || node.op == "onnx.Sin" || node.op == "onnx.Cast";
      const bool scaled = node.op == "onnx.Mul" && constant_of(graph_, input_of(node, 1)) &&
                          type(input_of(node, 1)).shape.empty();
      if (pointwise || scaled) {
        id = input_of(node, 0);
        continue;
      }
      const ir::Arg* axis = node.find("axis");
      return node.op == "onnx.Concat" && input_count(node) == 2 &&
             input_of(node, 0) == input_of(node, 1) && axis != nullptr &&
             (*axis->get<shape::Int>() == shape::Int(2) ||
              *axis->get<shape::Int>() == shape::Int(-1));
    }
    return false;
  }

  bool fits(ir::ValueId x, ir::ValueId cos, ir::ValueId sin) const {
    const auto& shape = type(x).shape;
    const auto& rows = type(cos).shape;
    return rows == type(sin).shape && rows[1] == shape[2] && rows[2] == shape[3] &&
           (rows[0] == shape[0] || rows[0] == shape::Int(1)) && type(x).dtype == type(cos).dtype &&
           type(x).dtype == type(sin).dtype && is_floating(type(x).dtype);
  }

  const ir::Graph& graph_;
};

/// The first half of each table, for every row of the batch; made once.
class Caches {
 public:
  explicit Caches(Rebuild& rebuild) : rebuild_(rebuild) {}

  ir::ValueId of(ir::ValueId table, ir::ValueId x, ir::PlaceId place) {
    const shape::Int batch = rebuild_.type(x).shape[0];
    const auto key = std::pair{table.index, shape::print(batch)};
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    ir::TensorType type = rebuild_.type(table);
    const shape::Int half(type.shape[2].constant().value() / 2);
    type.shape[2] = half;
    ir::ValueId cache = rebuild_.emit(
        "onnx.Slice",
        {table, rebuild_.ints({0}), rebuild_.ints({*half.constant()}), rebuild_.ints({2})}, {},
        type, place);
    if (!(type.shape[0] == batch)) {
      const ir::ValueId size =
          rebuild_.emit("onnx.Shape", {x}, {{"start", {shape::Int(0)}}, {"end", {shape::Int(1)}}},
                        {Dtype::i64, {1}}, place);
      const ir::ValueId sizes =
          rebuild_.emit("onnx.Concat", {size, rebuild_.ints({1, 1})}, {{"axis", {shape::Int(0)}}},
                        {Dtype::i64, {3}}, place);
      type.shape[0] = batch;
      cache = rebuild_.emit("onnx.Expand", {cache, sizes}, {}, type, place);
    }
    return made_.emplace(key, cache).first->second;
  }

 private:
  Rebuild& rebuild_;
  std::map<std::pair<std::uint32_t, std::string>, ir::ValueId> made_;
};

}  // namespace

void fuse_rotary(ir::Graph& graph) {
  const RotaryFinder finder(graph);
  Rebuild rebuild(graph);
  Caches caches(rebuild);
  for (const ir::Node& node : graph.nodes()) {
    const auto found = finder.find(node);
    if (!found) {
      rebuild.copy(node);
      continue;
    }
    const ir::ValueId x = rebuild(found->x);
    const ir::ValueId cos = caches.of(rebuild(found->cos), x, node.place);
    const ir::ValueId sin = caches.of(rebuild(found->sin), x, node.place);
    rebuild.replace(node.results[0], rebuild.emit("onnx.RotaryEmbedding", {x, cos, sin}, {},
                                                  rebuild.type(x), node.place));
  }
  graph = std::move(rebuild).finish();
}

}  // namespace modelport::passes
