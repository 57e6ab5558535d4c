#include "passes/quantize_weights.h"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "passes/code_rows.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/weight_products.h"
#include "weights/quantize/scheme.h"

namespace modelport::passes {
namespace {

ir::TensorType tensor(const weights::TensorForm& made) {
  return {made.dtype, {made.shape.begin(), made.shape.end()}};
}

class Quantizer {
 public:
  Quantizer(const ir::Graph& graph, const WeightQuantization& how, FusionContext& context)
      : graph_(graph), how_(how), context_(context), rebuild_(graph) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (!product(node) && !embedding(node) && !experts(node)) rebuild_.copy(node);
    }
    return std::move(rebuild_).finish();
  }

 private:
  struct Stored {
    ir::ValueId codes, scales, zero_points;
    std::int64_t columns = 0;
    int bits = 4;
    std::int64_t block = 32;
  };

  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  int bits_of(ir::ValueId id) const { return how_.bits_of(graph_.value(id).name); }

  const StoredCodes* given(ir::ValueId id) const {
    const auto found = how_.stored.find(graph_.value(id).name);
    return found == how_.stored.end() ? nullptr : &found->second;
  }

  std::int64_t columns_of(ir::ValueId id, bool turned) const {
    return type(id).shape[turned ? 0 : 1].constant().value_or(0);
  }

  bool can_be(ir::ValueId id, bool turned = false) const {
    if (id == ir::ValueId{} || graph_.value(id).origin != ir::Origin::weight) return false;
    if (given(id) != nullptr) return !turned;
    return !how_.only_stored && bits_of(id) != 0 && is_weight_matrix(graph_, id, true) &&
           columns_of(id, turned) >= how_.block;
  }

  void note(const ir::Node& node, std::string why) {
    context_.notes.push_back(
        {std::string(kWeightsInFewBits), std::move(why), graph_.place(node.place).module_path});
  }

  const Stored& stored(ir::ValueId id, bool turned, ir::PlaceId place) {
    const auto [known, is_new] = stored_.try_emplace({id, turned});
    if (!is_new) return known->second;
    const StoredCodes* there = given(id);
    const weights::Scheme scheme{
        .layout = weights::QuantizedLayout::onnx_matmul_nbits,
        .bits = there != nullptr ? there->bits : bits_of(id),
        .group = there != nullptr ? there->block : how_.block,
        .zero_points = there != nullptr ? there->zero_points : how_.zero_points,
        .scales = type(id).dtype,
        .choice = how_.search ? weights::ScaleChoice::search : weights::ScaleChoice::range};
    const weights::Weight facts{.name = graph_.value(id).name,
                                .dtype = type(id).dtype,
                                .shape = {columns_of(id, !turned), columns_of(id, turned)}};
    const auto results = tensors(id, turned, weights::quantized_form(facts, scheme), scheme, place);
    known->second = {results[0],     results[1],  results.size() > 2 ? results[2] : ir::ValueId{},
                     facts.shape[1], scheme.bits, scheme.group};
    return known->second;
  }

  /// Codes, scales and, where there are any, zero points: made of the weight, or weights
  /// themselves.
  std::vector<ir::ValueId> tensors(ir::ValueId id, bool turned, const weights::QuantizedForm& form,
                                   const weights::Scheme& scheme, ir::PlaceId place) {
    std::vector<ir::Type> types{tensor(form.codes), tensor(form.scales)};
    if (form.zero_points) types.emplace_back(tensor(*form.zero_points));
    if (given(id) == nullptr)
      return rebuild_.add("modelport.quantized",
                          {{"inputs", {ir::ArgList{{rebuild_(id)}}}},
                           {"layout", {std::string(name(scheme.layout))}},
                           {"bits", {shape::Int(scheme.bits)}},
                           {"block", {shape::Int(scheme.group)}},
                           {"search", {how_.search}},
                           {"turned", {turned}}},
                          std::move(types), place);
    std::vector<ir::ValueId> results;
    for (const std::string_view part : {".codes", ".scales", ".zero_points"}) {
      if (results.size() == types.size()) break;
      results.push_back(rebuild_.graph().add_weight(
          fmt::format("{}{}", graph_.value(id).name, part),
          std::get<ir::TensorType>(types[results.size()]), ir::WeightKind::parameter));
    }
    return results;
  }

  bool product(const ir::Node& node) {
    const auto found = any_weight_product(graph_, node);
    if (!found || !can_be(found->weight, found->turned)) return false;
    ir::ValueId result = multiplied(node, *found);
    if (found->bias != ir::ValueId{})
      result = rebuild_.emit("onnx.Add", {result, rebuild_(found->bias)}, {}, type(node.results[0]),
                             node.place);
    rebuild_.replace(node.results[0], result);
    note(node, "");
    return true;
  }

  ir::ValueId multiplied(const ir::Node& node, const WeightProduct& product) {
    const Stored& made = stored(product.weight, product.turned, node.place);
    std::vector<ir::ValueId> inputs{rebuild_(product.input), made.codes, made.scales};
    if (made.zero_points != ir::ValueId{}) inputs.push_back(made.zero_points);
    return rebuild_.emit("com.microsoft.MatMulNBits", inputs,
                         {{"K", {shape::Int(made.columns)}},
                          {"N", {shape::Int(columns_of(product.weight, !product.turned))}},
                          {"bits", {shape::Int(made.bits)}},
                          {"block_size", {shape::Int(made.block)}},
                          {"accuracy_level", {shape::Int(how_.accuracy_level)}}},
                         type(node.results[0]), node.place);
  }

  bool embedding(const ir::Node& node) {
    const ir::ValueId weight = looked_up(graph_, node);
    if (!can_be(weight)) return false;
    const Stored& made = stored(weight, false, node.place);
    if (made.columns % made.block != 0) {
      note(node, fmt::format("rows of {} columns are no multiple of its blocks", made.columns));
      return false;
    }
    const ir::ValueId indices = rebuild_(input_of(node, 1));
    const ir::ValueId codes = flat_codes(made, node.place);
    const ir::TensorType& result = type(node.results[0]);
    if (!how_.own_gather) {
      const CodeTable table{
          codes, made.scales, made.zero_points, made.bits, made.columns / made.block, made.block};
      rebuild_.replace(node.results[0],
                       rows_of_codes(rebuild_, table, indices, result, node.place));
    } else {
      std::vector<ir::ValueId> inputs{codes, indices, made.scales};
      if (made.zero_points != ir::ValueId{}) inputs.push_back(made.zero_points);
      rebuild_.replace(node.results[0], rebuild_.emit("com.microsoft.GatherBlockQuantized", inputs,
                                                      {{"bits", {shape::Int(made.bits)}},
                                                       {"block_size", {shape::Int(made.block)}},
                                                       {"gather_axis", {shape::Int(0)}},
                                                       {"quantize_axis", {shape::Int(1)}}},
                                                      result, node.place));
    }
    note(node, "");
    return true;
  }

  /// The weights of all experts, which share the size of blocks. Rows of the first are pairs: one
  /// of the gate, one of what it lets through.
  bool experts(const ir::Node& node) {
    if (node.op != "com.microsoft.MoE") return false;
    const ir::ValueId first = input_of(node, 2), second = input_of(node, 4);
    const int bits = bits_of(first);
    const std::int64_t block = std::gcd(
        std::gcd(*type(first).shape[2].constant(), *type(second).shape[2].constant()), how_.block);
    const auto in = expert_codes(first, bits, block, true, node.place);
    const auto out = expert_codes(second, bits, block, false, node.place);
    const auto zero_points = [&](const std::vector<ir::ValueId>& made) {
      return made.size() > 2 ? ir::Arg{made[2]} : ir::Arg{};
    };
    const ir::Arg shares{rebuild_(input_of(node, 1))};
    ir::ArgList inputs{{rebuild_(input_of(node, 0))},
                       shares,
                       {in[0]},
                       {in[1]},
                       {},
                       {out[0]},
                       {out[1]},
                       {},
                       {},
                       {},
                       {}};
    inputs.insert(inputs.end(), {zero_points(in), zero_points(out), {}, shares});
    const auto results = rebuild_.add("com.microsoft.QMoE",
                                      {{"inputs", {std::move(inputs)}},
                                       {"k", *node.find("k")},
                                       {"expert_weight_bits", {shape::Int(bits)}},
                                       {"block_size", {shape::Int(block)}},
                                       {"accuracy_level", {shape::Int(how_.accuracy_level)}},
                                       {"activation_type", {std::string("swiglu")}},
                                       {"activation_alpha", {1.0}},
                                       {"activation_beta", {0.0}},
                                       {"swiglu_fusion", {shape::Int(1)}},
                                       {"normalize_routing_weights", {shape::Int(0)}}},
                                      {type(node.results[0])}, node.place);
    rebuild_.replace(node.results[0], results[0]);
    note(node, "");
    return true;
  }

  std::vector<ir::ValueId> expert_codes(ir::ValueId id, int bits, std::int64_t block,
                                        bool interleaved, ir::PlaceId place) {
    weights::Weight facts{.name = graph_.value(id).name, .dtype = type(id).dtype};
    for (const shape::Int& size : type(id).shape) facts.shape.push_back(*size.constant());
    const weights::Scheme scheme{.layout = weights::QuantizedLayout::onnx_gather_block_quantized,
                                 .bits = bits,
                                 .group = block,
                                 .zero_points = how_.zero_points,
                                 .scales = type(id).dtype};
    const weights::QuantizedForm form = weights::quantized_form(facts, scheme);
    std::vector<ir::Type> types{tensor(form.codes), tensor(form.scales)};
    if (form.zero_points) types.emplace_back(tensor(*form.zero_points));
    return rebuild_.add("modelport.quantized",
                        {{"inputs", {ir::ArgList{{rebuild_(id)}}}},
                         {"layout", {std::string(name(scheme.layout))}},
                         {"bits", {shape::Int(bits)}},
                         {"block", {shape::Int(block)}},
                         {"search", {how_.search}},
                         {"interleaved", {interleaved}}},
                        std::move(types), place);
  }

  /// A row's blocks one after the other: the same bytes.
  ir::ValueId flat_codes(const Stored& made, ir::PlaceId place) {
    const auto shape = rebuild_.type(made.codes).shape;
    const std::int64_t bytes = *shape[1].constant() * *shape[2].constant();
    return rebuild_.emit("onnx.Reshape", {made.codes, rebuild_.ints({0, bytes})}, {},
                         {Dtype::u8, {shape[0], bytes}}, place);
  }

  const ir::Graph& graph_;
  const WeightQuantization& how_;
  FusionContext& context_;
  Rebuild rebuild_;
  std::map<std::pair<ir::ValueId, bool>, Stored> stored_;
};

}  // namespace

void quantize_weights(ir::Graph& graph, const WeightQuantization& how, FusionContext& context) {
  graph = Quantizer(graph, how, context).run();
}

}  // namespace modelport::passes
