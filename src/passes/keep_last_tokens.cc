// Who generates reads the logits of the last token alone: what only they need of the others is not
// computed. In a prompt of a small model with a large vocabulary that is a quarter of all work.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "passes/constants.h"
#include "passes/onnx_passes.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kLogits = "logits";
constexpr std::string_view kTokensMask = "attention_mask";
constexpr std::string_view kFusion = "logits of the last token";
/// An initializer that says whether all are computed after all.
constexpr std::string_view kAllLogits = "modelport.all_logits";

/// Of each token by itself: axes before the last are left as they are.
constexpr std::array<std::string_view, 3> kProducts{"onnx.MatMul", "com.microsoft.FusedMatMul",
                                                    "com.microsoft.MatMulNBits"};
constexpr std::array<std::string_view, 8> kAlongChannels{
    "onnx.Split",
    "onnx.Softmax",
    "onnx.LayerNormalization",
    "onnx.RMSNormalization",
    "onnx.SimplifiedLayerNormalization",
    "com.microsoft.SkipLayerNormalization",
    "com.microsoft.SkipSimplifiedLayerNormalization",
    "com.microsoft.BiasGelu"};
constexpr std::array<std::string_view, 25> kElementwise{"onnx.Add",
                                                        "onnx.Sub",
                                                        "onnx.Mul",
                                                        "onnx.Div",
                                                        "onnx.Pow",
                                                        "onnx.Min",
                                                        "onnx.Max",
                                                        "onnx.Neg",
                                                        "onnx.Abs",
                                                        "onnx.Exp",
                                                        "onnx.Erf",
                                                        "onnx.Sqrt",
                                                        "onnx.Reciprocal",
                                                        "onnx.Sigmoid",
                                                        "onnx.Tanh",
                                                        "onnx.Relu",
                                                        "onnx.Gelu",
                                                        "onnx.Softplus",
                                                        "onnx.Clip",
                                                        "onnx.Cast",
                                                        "onnx.Where",
                                                        "onnx.Identity",
                                                        "com.microsoft.QuickGelu",
                                                        "com.microsoft.FastGelu",
                                                        "com.microsoft.Gelu"};

class LastTokens {
 public:
  LastTokens(const ir::Graph& graph, ir::ValueId logits, ir::ValueId mask)
      : graph_(graph), logits_(logits), mask_(mask), rebuild_(graph) {
    find();
  }

  /// Whether a product is done for one token that was done for all.
  bool saves() const {
    return std::ranges::any_of(late_, [&](ir::NodeId id) { return is_product(graph_.node(id)); });
  }
  const std::string& head() const {
    return graph_.place(graph_.node(*late_.rbegin()).place).module_path;
  }

  ir::Graph run() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      if (late_.contains({i})) {
        copy_late(graph_.node({i}));
      } else {
        rebuild_.copy(graph_.node({i}));
      }
    }
    return std::move(rebuild_).finish();
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }
  const shape::Int& batch() const { return type(logits_).shape[0]; }
  const shape::Int& tokens() const { return type(logits_).shape[1]; }

  static bool is_product(const ir::Node& node) {
    return std::ranges::find(kProducts, node.op) != kProducts.end();
  }

  /// From the logits back, as far as nothing else needs what is computed.
  void find() {
    std::set<ir::ValueId> needed;  // by others than these nodes
    ir::for_each_end(graph_, [&](ir::ValueId id) { needed.insert(id); });
    needed.erase(logits_);
    std::set<ir::ValueId> wanted{logits_};
    for (std::uint32_t i = static_cast<std::uint32_t>(graph_.nodes().size()); i-- > 0;) {
      const ir::Node& node = graph_.node({i});
      const bool late =
          std::ranges::any_of(node.results, [&](ir::ValueId id) { return wanted.contains(id); }) &&
          std::ranges::none_of(node.results, [&](ir::ValueId id) { return needed.contains(id); }) &&
          is_by_token(node);
      if (late) late_.insert({i});
      ir::for_each_operand(node, [&](ir::ValueId id) { (late ? wanted : needed).insert(id); });
    }
  }

  bool has_tokens(ir::ValueId id) const {
    const auto& shape = type(id).shape;
    return shape.size() >= 3 && shape[0] == batch() && shape[1] == tokens();
  }

  bool is_by_token(const ir::Node& node) const {
    const auto is_in = [&](const auto& names) {
      return std::ranges::find(names, node.op) != names.end();
    };
    if (!std::ranges::all_of(node.results, [&](ir::ValueId id) {
          return graph_.value(id).tensor().shape.empty() || has_tokens(id);
        }))
      return false;
    if (is_in(kElementwise)) return is_elementwise(node);
    if (is_product(node)) return node.find("transA") == nullptr && rest_is_known(node, 1);
    if (is_in(kAlongChannels)) return is_last_axis(node) && rest_is_known(node, 2);
    return node.op == "onnx.Reshape" && keeps_tokens(node);
  }

  /// Inputs beside the first ones are weights and numbers, the same for all tokens.
  bool rest_is_known(const ir::Node& node, std::size_t first) const {
    if (!has_tokens(input_of(node, 0))) return false;
    for (std::size_t i = 1; i < input_count(node); ++i) {
      const ir::ValueId id = input_of(node, i);
      if (id == ir::ValueId{} || (i < first && has_tokens(id))) continue;
      const auto& shape = type(id).shape;
      if (!std::ranges::all_of(shape,
                               [](const shape::Int& size) { return size.constant().has_value(); }))
        return false;
    }
    return true;
  }

  bool is_last_axis(const ir::Node& node) const {
    const ir::Arg* axis = node.find("axis");
    if (axis == nullptr) return node.op != "onnx.Split";
    const auto at = axis->get<shape::Int>()->constant();
    const auto rank = static_cast<std::int64_t>(type(input_of(node, 0)).shape.size());
    return at == -1 || at == rank - 1;
  }

  /// Operands have tokens where the result has them, or are the same for all.
  bool is_elementwise(const ir::Node& node) const {
    const std::size_t rank = type(node.results[0]).shape.size();
    for (std::size_t i = 0; i < input_count(node); ++i) {
      const ir::ValueId id = input_of(node, i);
      if (id == ir::ValueId{}) continue;
      const auto& shape = type(id).shape;
      if (shape.size() == rank && has_tokens(id)) continue;
      if (shape.size() >= rank - 1 && shape[shape.size() - (rank - 1)] != shape::Int(1))
        return false;
    }
    return true;
  }

  bool keeps_tokens(const ir::Node& node) const {
    const auto sizes = constant_of(graph_, input_of(node, 1));
    return has_tokens(input_of(node, 0)) && sizes && sizes->size() >= 3 && sizes->at(0) == 0 &&
           sizes->at(1) == 0;
  }

  void copy_late(const ir::Node& node) {
    std::map<ir::ValueId, ir::ValueId> whole;  // others may read on
    for (std::size_t i = 0; i < input_count(node); ++i) {
      const ir::ValueId id = input_of(node, i);
      if (id == ir::ValueId{} || whole.contains(id) || late_.contains(graph_.value(id).producer) ||
          !has_tokens(id))
        continue;
      whole.emplace(id, rebuild_(id));
      rebuild_.replace(id, last_of(id, node.place));
    }
    rebuild_.copy(node);
    for (const auto& [id, before] : whole) rebuild_.replace(id, before);
    for (const ir::ValueId id : node.results) shorten(rebuild_(id));
  }

  void shorten(ir::ValueId made) {
    auto& shape = std::get<ir::TensorType>(rebuild_.graph().value(made).type).shape;
    if (!shape.empty()) shape[1] = shape::Int(1);
  }

  ir::ValueId last_of(ir::ValueId id, ir::PlaceId place) {
    ir::ValueId& last = last_[id];
    if (last != ir::ValueId{}) return last;
    if (index_ == ir::ValueId{}) index_ = index(rebuild_(with_tokens(id)), place);
    ir::TensorType one = type(id);
    one.shape[1] = shape::Int(1);
    last = rebuild_.emit("onnx.GatherND", {rebuild_(id), index_}, {{"batch_dims", {shape::Int(1)}}},
                         one, place);
    return last;
  }

  /// What tells the number of tokens: an input where one has them, which others ask as well.
  ir::ValueId with_tokens(ir::ValueId id) const {
    const auto input = std::ranges::find_if(graph_.inputs, [&](ir::ValueId x) {
      const auto* tensor = std::get_if<ir::TensorType>(&graph_.value(x).type);
      return tensor != nullptr && tensor->shape.size() >= 2 && tensor->shape[1] == tokens();
    });
    return input == graph_.inputs.end() ? id : *input;
  }

  /// [batch, 1, 1]: where each row's last token is. A client that wants all of them sets an
  /// initializer, which makes it [batch, tokens, 1].
  ir::ValueId index(ir::ValueId whole, ir::PlaceId place) {
    const auto i64 = [](std::vector<shape::Int> shape) {
      return ir::TensorType{Dtype::i64, std::move(shape)};
    };
    const auto emit = [&](std::string op, const std::vector<ir::ValueId>& inputs,
                          ir::TensorType made, std::vector<ir::NamedArg> attributes = {}) {
      return rebuild_.emit(std::move(op), inputs, std::move(attributes), std::move(made), place);
    };
    const auto number = [&](std::int64_t value) {
      return rebuild_.number(static_cast<double>(value), Dtype::i64);
    };
    const shape::Int one(1);
    const ir::ValueId all = rebuild_.emit("onnx.Constant", {},
                                          {{"dtype", {Dtype::boolean}},
                                           {"shape", {ir::ArgList{}}},
                                           {"values", {ir::ArgList{{shape::Int(0)}}}},
                                           {"name", {std::string(kAllLogits)}}},
                                          {Dtype::boolean, {}}, place);
    const ir::ValueId count =
        emit("onnx.Shape", {whole}, i64({one}), {{"start", {one}}, {"end", {shape::Int(2)}}});
    const ir::ValueId end = rebuild_.ints({std::numeric_limits<std::int64_t>::max()});
    const ir::ValueId fresh =
        emit("onnx.Slice",
             {rebuild_(mask_), emit("onnx.Neg", {count}, i64({one})), end, rebuild_.ints({1})},
             {type(mask_).dtype, {batch(), tokens()}});
    const auto cast = [&](ir::ValueId x, Dtype to) {
      if (rebuild_.type(x).dtype == to) return x;
      return emit("onnx.Cast", {x}, {to, {batch(), tokens()}}, {{"to", {to}}});
    };
    const ir::ValueId there = cast(cast(fresh, Dtype::boolean), Dtype::i32);
    const ir::ValueId last = emit("onnx.ArgMax", {there}, i64({batch(), one}),
                                  {{"axis", {one}}, {"select_last_index", {one}}});
    const ir::ValueId start = emit("onnx.Where", {all, number(0), last}, i64({batch(), one}));
    const ir::ValueId scalar = emit("onnx.Squeeze", {count}, i64({}));
    const ir::ValueId many = emit("onnx.Where", {all, scalar, number(1)}, i64({}));
    const ir::ValueId steps = emit("onnx.Range", {number(0), many, number(1)}, i64({one}));
    const ir::ValueId at = emit("onnx.Add", {start, steps}, i64({batch(), one}));
    return emit("onnx.Unsqueeze", {at, rebuild_.ints({2})}, i64({batch(), one, one}));
  }

  const ir::Graph& graph_;
  ir::ValueId logits_, mask_;
  Rebuild rebuild_;
  std::set<ir::NodeId> late_;                // nodes that are done for the last token
  std::map<ir::ValueId, ir::ValueId> last_;  // of what others read whole
  ir::ValueId index_;
};

}  // namespace

void keep_last_tokens(ir::Graph& graph, FusionContext& context) {
  const auto output = std::ranges::find(graph.outputs, kLogits, &ir::Output::name);
  const ir::ValueId* logits =
      output == graph.outputs.end() ? nullptr : output->value.get<ir::ValueId>();
  const ir::ValueId* mask = graph.find_input(kTokensMask);
  if (logits == nullptr || mask == nullptr) return;
  const auto& shape = graph.value(*logits).tensor().shape;
  if (shape.size() != 3 || shape[1].constant() || graph.value(*mask).tensor().shape.size() != 2)
    return;
  LastTokens last(graph, *logits, *mask);
  if (!last.saves()) return;
  context.notes.push_back({std::string(kFusion), "", last.head()});
  graph = last.run();
  share_common(graph);  // caches in place look for the last token as well
  drop_unused(graph);
}

}  // namespace modelport::passes
