#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "passes/quantize_weights.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/weight_products.h"
#include "weights/quantize/scheme.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kProductsIn8Bits = "products in 8 bits";

class Products {
 public:
  Products(const ir::Graph& graph, const WeightQuantization& how, FusionContext& context)
      : graph_(graph), how_(how), context_(context), rebuild_(graph) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      const auto found = any_weight_product(graph_, node);
      const bool can_be = found && can_be_coded(found->weight);
      if (can_be && how_.inputs == InputCodes::measured) range_of(found->input);
      if (can_be && how_.inputs != InputCodes::measured) {
        product(node, *found);
      } else if (how_.inputs == InputCodes::measured || !embedding(node)) {
        rebuild_.copy(node);
      }
    }
    ir::Graph made = std::move(rebuild_).finish();
    for (ir::Output& range : measured_) made.outputs.push_back(std::move(range));
    return made;
  }

 private:
  struct Codes {
    ir::ValueId codes, scale, zero_point;
  };

  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  shape::Int rows_of(ir::ValueId weight, bool turned) const {
    return type(weight).shape[turned ? 1 : 0];
  }

  bool can_be_coded(ir::ValueId weight) const {
    return is_weight_matrix(graph_, weight, false) && how_.bits_of(graph_.value(weight).name) != 0;
  }

  void note(const ir::Node& node) {
    context_.notes.push_back(
        {std::string(kProductsIn8Bits), "", graph_.place(node.place).module_path});
  }

  /// Two further outputs for each input of products: its least and its largest value.
  void range_of(ir::ValueId input) {
    if (!inputs_.try_emplace(input).second) return;
    for (const std::string_view op : {"Min", "Max"}) {
      const ir::ValueId found =
          rebuild_.emit(fmt::format("onnx.Reduce{}", op), {rebuild_(input)},
                        {{"keepdims", {shape::Int(0)}}}, {type(input).dtype, {}}, {});
      measured_.push_back({fmt::format("modelport.{}.{}", op, inputs_.size() - 1), {found}});
    }
  }

  const Codes& coded(ir::ValueId input, ir::PlaceId place) {
    const auto [known, is_new] = inputs_.try_emplace(input);
    if (!is_new) return known->second;
    const ir::TensorType codes{Dtype::u8, type(input).shape};
    if (how_.inputs == InputCodes::per_call) {
      const auto made = rebuild_.add(
          "onnx.DynamicQuantizeLinear", {{"inputs", {ir::ArgList{{rebuild_(input)}}}}},
          {codes, ir::TensorType{Dtype::f32, {}}, ir::TensorType{Dtype::u8, {}}}, place);
      return known->second = {made[0], made[1], made[2]};
    }
    const Range range = how_.ranges.at(inputs_.size() - 1);
    const double low = std::min(range.low, 0.0), high = std::max(range.high, 0.0);
    const double scale = high > low ? (high - low) / 255 : 1;
    const ir::ValueId step = rebuild_.number(scale, Dtype::f32);
    const ir::ValueId zero = rebuild_.number(std::round(-low / scale), Dtype::u8);
    return known->second = {rebuild_.emit("onnx.QuantizeLinear", {rebuild_(input), step, zero}, {},
                                          codes, place),
                            step, zero};
  }

  /// The weight with a scale for each row, and its rows as columns where products want them.
  /// `turned` is one whose rows are columns to begin with.
  std::vector<ir::ValueId> stored(ir::ValueId id, bool transposed, bool turned, ir::PlaceId place) {
    const auto [known, is_new] = stored_.try_emplace({id, transposed, turned});
    if (!is_new) return known->second;
    const shape::Int rows = rows_of(id, turned), columns = rows_of(id, !turned);
    const ir::TensorType codes{
        Dtype::i8, transposed ? std::vector{columns, rows} : std::vector{rows, columns}};
    constexpr auto kLayout = weights::QuantizedLayout::onnx_matmul_integer;
    return known->second = rebuild_.add("modelport.quantized",
                                        {{"inputs", {ir::ArgList{{rebuild_(id)}}}},
                                         {"layout", {std::string(name(kLayout))}},
                                         {"bits", {shape::Int(8)}},
                                         {"block", {shape::Int(0)}},
                                         {"search", {how_.search}},
                                         {"transposed", {transposed}},
                                         {"turned", {turned}}},
                                        {codes, ir::TensorType{Dtype::f32, {rows}}}, place);
  }

  void product(const ir::Node& node, const WeightProduct& found) {
    const Codes input = coded(found.input, node.place);
    const auto weight = stored(found.weight, true, found.turned, node.place);
    const shape::Int rows = rows_of(found.weight, found.turned);
    const ir::TensorType& result = type(node.results[0]);
    const auto emit = [&](const std::string& op, const std::vector<ir::ValueId>& inputs,
                          const ir::TensorType& made, std::vector<ir::NamedArg> args = {}) {
      return rebuild_.emit("onnx." + op, inputs, std::move(args), made, node.place);
    };
    ir::ValueId value;
    if (how_.inputs == InputCodes::per_call) {
      const ir::ValueId sums = emit("MatMulInteger", {input.codes, weight[0], input.zero_point},
                                    {Dtype::i32, result.shape});
      const ir::ValueId numbers = emit("Cast", {sums}, result, {{"to", {Dtype::f32}}});
      const ir::ValueId scales = emit("Mul", {input.scale, weight[1]}, {Dtype::f32, {rows}});
      value = emit("Mul", {numbers, scales}, result);
    } else {
      const ir::ValueId left =
          emit("DequantizeLinear", {input.codes, input.scale, input.zero_point}, type(found.input));
      const ir::ValueId right =
          emit("DequantizeLinear", {weight[0], weight[1], zeros(rows)},
               {Dtype::f32, rebuild_.type(weight[0]).shape}, {{"axis", {shape::Int(1)}}});
      value = emit("MatMul", {left, right}, result);
    }
    if (found.bias != ir::ValueId{}) value = emit("Add", {value, rebuild_(found.bias)}, result);
    rebuild_.replace(node.results[0], value);
    note(node);
  }

  ir::ValueId zeros(const shape::Int& count) {
    const ir::ArgList values(static_cast<std::size_t>(*count.constant()), {shape::Int(0)});
    return rebuild_.emit(
        "onnx.Constant", {},
        {{"dtype", {Dtype::i8}}, {"shape", {ir::ArgList{{count}}}}, {"values", {values}}},
        {Dtype::i8, {count}}, {});
  }

  bool embedding(const ir::Node& node) {
    const ir::ValueId weight = looked_up(graph_, node);
    if (weight == ir::ValueId{} || !can_be_coded(weight)) return false;
    const auto made = stored(weight, false, false, node.place);
    const ir::ValueId indices = rebuild_(input_of(node, 1));
    const ir::TensorType& result = type(node.results[0]);
    const auto gather = [&](ir::ValueId from, ir::TensorType type) {
      return rebuild_.emit("onnx.Gather", {from, indices}, {{"axis", {shape::Int(0)}}},
                           std::move(type), node.place);
    };
    const std::vector<shape::Int> lead(result.shape.begin(), result.shape.end() - 1);
    std::vector<shape::Int> apart = lead;
    apart.emplace_back(1);
    const ir::ValueId codes = gather(made[0], {Dtype::i8, result.shape});
    const ir::ValueId numbers =
        rebuild_.emit("onnx.Cast", {codes}, {{"to", {Dtype::f32}}}, result, node.place);
    const ir::ValueId scales =
        rebuild_.emit("onnx.Unsqueeze", {gather(made[1], {Dtype::f32, lead}), rebuild_.ints({-1})},
                      {}, {Dtype::f32, apart}, node.place);
    rebuild_.replace(node.results[0],
                     rebuild_.emit("onnx.Mul", {numbers, scales}, {}, result, node.place));
    note(node);
    return true;
  }

  const ir::Graph& graph_;
  const WeightQuantization& how_;
  FusionContext& context_;
  Rebuild rebuild_;
  std::map<ir::ValueId, Codes> inputs_;
  std::map<std::tuple<ir::ValueId, bool, bool>, std::vector<ir::ValueId>> stored_;
  std::vector<ir::Output> measured_;
};

}  // namespace

void quantize_products(ir::Graph& graph, const WeightQuantization& how, FusionContext& context) {
  graph = Products(graph, how, context).run();
}

}  // namespace modelport::passes
