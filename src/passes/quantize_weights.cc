#include "passes/quantize_weights.h"

#include <fmt/format.h>

#include <map>

#include "passes/constants.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "weights/quantize/scheme.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kFusion = "weights in few bits";
/// Smaller ones are not worth a kernel.
constexpr std::int64_t kLeast = 1 << 10;

class Quantizer {
 public:
  Quantizer(const ir::Graph& graph, const WeightQuantization& how, FusionContext& context)
      : graph_(graph), how_(how), context_(context), rebuild_(graph) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      const bool done = (node.op == "onnx.MatMul" && product(node)) ||
                        (node.op == "onnx.Gemm" && product_and_sum(node)) ||
                        (node.op == "onnx.Gather" && embedding(node));
      if (!done) rebuild_.copy(node);
    }
    return std::move(rebuild_).finish();
  }

 private:
  struct Stored {
    ir::ValueId codes, scales, zero_points;
    std::int64_t columns = 0;
  };

  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  /// The weight whose transpose the value is.
  ir::ValueId transposed_weight(ir::ValueId id) const {
    if (graph_.value(id).origin != ir::Origin::node) return {};
    const ir::Node& node = graph_.node(graph_.value(id).producer);
    if (node.op != "onnx.Transpose" || type(id).shape.size() != 2) return {};
    return int_list_of(*node.find("perm")) == std::vector<std::int64_t>{1, 0} ? input_of(node, 0)
                                                                              : ir::ValueId{};
  }

  bool can_be(ir::ValueId id) const {
    if (id == ir::ValueId{} || graph_.value(id).origin != ir::Origin::weight) return false;
    const ir::TensorType& weight = type(id);
    if (weight.shape.size() != 2 || graph_.value(id).weight_kind != ir::WeightKind::parameter)
      return false;
    const auto rows = weight.shape[0].constant().value_or(0);
    const auto columns = weight.shape[1].constant().value_or(0);
    return (weight.dtype == Dtype::f32 || weight.dtype == Dtype::f16) && columns >= how_.block &&
           rows * columns >= kLeast;
  }

  void note(const ir::Node& node, std::string why) {
    context_.notes.push_back(
        {std::string(kFusion), std::move(why), graph_.place(node.place).module_path});
  }

  const Stored& stored(ir::ValueId id, ir::PlaceId place) {
    const auto [known, is_new] = stored_.try_emplace(id);
    if (!is_new) return known->second;
    const ir::TensorType& weight = type(id);
    const weights::Weight facts{
        .name = graph_.value(id).name,
        .dtype = weight.dtype,
        .shape = {*weight.shape[0].constant(), *weight.shape[1].constant()}};
    const weights::Scheme scheme{
        .layout = weights::QuantizedLayout::onnx_matmul_nbits,
        .bits = how_.bits,
        .group = how_.block,
        .zero_points = how_.zero_points,
        .scales = weight.dtype,
        .choice = how_.search ? weights::ScaleChoice::search : weights::ScaleChoice::range};
    const weights::QuantizedForm form = weights::quantized_form(facts, scheme);
    const auto tensor = [](const weights::TensorForm& made) {
      return ir::TensorType{made.dtype, {made.shape.begin(), made.shape.end()}};
    };
    std::vector<ir::Type> types{tensor(form.codes), tensor(form.scales)};
    if (form.zero_points) types.emplace_back(tensor(*form.zero_points));
    const auto results = rebuild_.add("modelport.quantized",
                                      {{"inputs", {ir::ArgList{{rebuild_(id)}}}},
                                       {"layout", {std::string(name(scheme.layout))}},
                                       {"bits", {shape::Int(how_.bits)}},
                                       {"block", {shape::Int(how_.block)}},
                                       {"search", {how_.search}}},
                                      std::move(types), place);
    known->second = {results[0], results[1], results.size() > 2 ? results[2] : ir::ValueId{},
                     facts.shape[1]};
    return known->second;
  }

  bool product(const ir::Node& node) {
    const ir::ValueId weight = transposed_weight(input_of(node, 1));
    if (weight == ir::ValueId{}) {
      if (graph_.value(input_of(node, 1)).origin == ir::Origin::weight)
        note(node, "the weight has its columns where kernels for few bits want rows");
      return false;
    }
    if (!can_be(weight)) return false;
    rebuild_.replace(node.results[0], multiplied(node, weight));
    note(node, "");
    return true;
  }

  /// x times the transposed weight plus a bias, as products of two axes are lowered.
  bool product_and_sum(const ir::Node& node) {
    const ir::Arg* transposed = node.find("transB");
    const bool plain = transposed != nullptr && *transposed == ir::Arg{shape::Int(1)} &&
                       node.find("alpha") == nullptr && node.find("beta") == nullptr &&
                       node.find("transA") == nullptr;
    const ir::ValueId weight = input_of(node, 1);
    if (!plain || !can_be(weight)) return false;
    ir::ValueId result = multiplied(node, weight);
    if (const ir::ValueId bias = input_of(node, 2); bias != ir::ValueId{})
      result = rebuild_.emit("onnx.Add", {result, rebuild_(bias)}, {}, type(node.results[0]),
                             node.place);
    rebuild_.replace(node.results[0], result);
    note(node, "");
    return true;
  }

  ir::ValueId multiplied(const ir::Node& node, ir::ValueId weight) {
    const Stored& made = stored(weight, node.place);
    std::vector<ir::ValueId> inputs{rebuild_(input_of(node, 0)), made.codes, made.scales};
    if (made.zero_points != ir::ValueId{}) inputs.push_back(made.zero_points);
    return rebuild_.emit("com.microsoft.MatMulNBits", inputs,
                         {{"K", {shape::Int(made.columns)}},
                          {"N", {type(weight).shape[0]}},
                          {"bits", {shape::Int(how_.bits)}},
                          {"block_size", {shape::Int(how_.block)}},
                          {"accuracy_level", {shape::Int(how_.accuracy_level)}}},
                         type(node.results[0]), node.place);
  }

  bool embedding(const ir::Node& node) {
    const ir::ValueId weight = input_of(node, 0);
    const ir::Arg* axis = node.find("axis");
    if (axis != nullptr && !(*axis->get<shape::Int>() == shape::Int(0))) return false;
    if (!can_be(weight)) return false;
    const Stored& made = stored(weight, node.place);
    if (made.columns % how_.block != 0) {
      note(node, fmt::format("rows of {} columns are no multiple of its blocks", made.columns));
      return false;
    }
    std::vector<ir::ValueId> inputs{flat_codes(made, node.place), rebuild_(input_of(node, 1)),
                                    made.scales};
    if (made.zero_points != ir::ValueId{}) inputs.push_back(made.zero_points);
    const ir::ValueId result = rebuild_.emit("com.microsoft.GatherBlockQuantized", inputs,
                                             {{"bits", {shape::Int(how_.bits)}},
                                              {"block_size", {shape::Int(how_.block)}},
                                              {"gather_axis", {shape::Int(0)}},
                                              {"quantize_axis", {shape::Int(1)}}},
                                             type(node.results[0]), node.place);
    rebuild_.replace(node.results[0], result);
    note(node, "");
    return true;
  }

  /// A row's blocks one after the other: the same bytes.
  ir::ValueId flat_codes(const Stored& made, ir::PlaceId place) {
    const auto& shape = rebuild_.type(made.codes).shape;
    const std::int64_t bytes = *shape[1].constant() * *shape[2].constant();
    return rebuild_.emit("onnx.Reshape", {made.codes, rebuild_.ints({0, bytes})}, {},
                         {Dtype::u8, {shape[0], bytes}}, place);
  }

  const ir::Graph& graph_;
  const WeightQuantization& how_;
  FusionContext& context_;
  Rebuild rebuild_;
  std::map<ir::ValueId, Stored> stored_;
};

}  // namespace

void quantize_weights(ir::Graph& graph, const WeightQuantization& how, FusionContext& context) {
  graph = Quantizer(graph, how, context).run();
}

}  // namespace modelport::passes
