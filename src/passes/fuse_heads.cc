// Attention between tokens whose heads lie side by side, as encoders have it: onnxruntime's kernel
// takes and gives them so, and nothing is turned around it.
#include <map>
#include <optional>

#include "ir/users.h"
#include "passes/constants.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kFusion = "attention on heads side by side";

class SideBySide {
 public:
  SideBySide(const ir::Graph& graph, FusionContext& context)
      : graph_(graph), context_(context), rebuild_(graph), users_(graph) {
    for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
      if (graph.node({i}).op == "onnx.Attention") look_at({i});
    }
  }

  ir::Graph run() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const auto attention = attention_of_.find(ir::NodeId{i});
      if (attention == attention_of_.end()) {
        rebuild_.copy(graph_.node({i}));
      } else {
        fuse(graph_.node({i}), graph_.node(attention->second));
      }
    }
    return std::move(rebuild_).finish();
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  void look_at(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    const auto joined = joined_after(node);
    std::string why = objection(node);
    if (why.empty() && !joined) why = "its heads are not joined after it";
    if (why.empty()) attention_of_[*joined] = id;
    // Others are no such attention: new tokens on a cache, or on what an encoder gave.
    const bool among_themselves =
        type(input_of(node, 0)).shape[2] == type(input_of(node, 1)).shape[2];
    if (why.empty() || among_themselves)
      context_.notes.push_back({std::string(kFusion), why, graph_.place(node.place).module_path});
  }

  /// Empty where the kernel computes the same.
  std::string objection(const ir::Node& node) const {
    if (input_count(node) > 3) return "it has a mask, and rows that see nothing would differ";
    if (node.find("is_causal") != nullptr) return "it is causal";
    const auto& q = type(input_of(node, 0));
    const auto& k = type(input_of(node, 1));
    const auto& v = type(input_of(node, 2));
    if (q.dtype != Dtype::f32) return "its kernel takes f32";
    if (!q.shape[1].is_constant() || !(q.shape[1] == k.shape[1] && q.shape[1] == v.shape[1]))
      return "its heads share keys";
    if (!(q.shape[3] == k.shape[3])) return "keys are not as wide as queries";
    for (std::size_t i = 0; i < 3; ++i) {
      if (!side_by_side(input_of(node, i))) return "its heads are not made side by side";
    }
    return {};
  }

  const ir::Node* producer(ir::ValueId id, std::string_view op) const {
    const ir::Value& value = graph_.value(id);
    if (value.origin != ir::Origin::node) return nullptr;
    const ir::Node& node = graph_.node(value.producer);
    return node.op == op ? &node : nullptr;
  }

  static bool swaps_heads(const ir::Node& transpose) {
    return int_list_of(*transpose.find("perm")) == std::vector<std::int64_t>{0, 2, 1, 3};
  }

  /// [batch, tokens, heads * width] that became [batch, heads, tokens, width].
  std::optional<ir::ValueId> side_by_side(ir::ValueId heads) const {
    const ir::Node* turned = producer(heads, "onnx.Transpose");
    if (turned == nullptr || !swaps_heads(*turned)) return std::nullopt;
    const ir::Node* parted = producer(input_of(*turned, 0), "onnx.Reshape");
    if (parted == nullptr) return std::nullopt;
    const ir::ValueId joined = input_of(*parted, 0);
    if (!joins(type(joined).shape, type(parted->results[0]).shape)) return std::nullopt;
    return joined;
  }

  static bool joins(const std::vector<shape::Int>& joined, const std::vector<shape::Int>& parted) {
    return joined.size() == 3 && parted.size() == 4 && joined[0] == parted[0] &&
           joined[1] == parted[1] && joined[2] == parted[2] * parted[3];
  }

  /// The node that lays the heads side by side again, where nothing else wants them.
  std::optional<ir::NodeId> joined_after(const ir::Node& attention) const {
    const auto turned = only_user(attention.results[0], "onnx.Transpose");
    if (!turned || !swaps_heads(graph_.node(*turned))) return std::nullopt;
    const ir::ValueId parted = graph_.node(*turned).results[0];
    const auto joined = only_user(parted, "onnx.Reshape");
    if (!joined || !joins(type(graph_.node(*joined).results[0]).shape, type(parted).shape))
      return std::nullopt;
    return joined;
  }

  std::optional<ir::NodeId> only_user(ir::ValueId id, std::string_view op) const {
    const auto user = users_.only(id);
    return user && graph_.node(*user).op == op ? user : std::nullopt;
  }

  void fuse(const ir::Node& joined, const ir::Node& attention) {
    std::vector<ir::ValueId> inputs;
    for (std::size_t i = 0; i < 3; ++i)
      inputs.push_back(rebuild_(*side_by_side(input_of(attention, i))));
    std::vector<ir::NamedArg> attributes{{"num_heads", {type(input_of(attention, 0)).shape[1]}}};
    if (const ir::Arg* scale = attention.find("scale")) attributes.push_back({"scale", *scale});
    const ir::ValueId result =
        rebuild_.emit("com.microsoft.MultiHeadAttention", inputs, std::move(attributes),
                      type(joined.results[0]), attention.place);
    rebuild_.replace(joined.results[0], result);
  }

  const ir::Graph& graph_;
  FusionContext& context_;
  Rebuild rebuild_;
  ir::Users users_;
  std::map<ir::NodeId, ir::NodeId> attention_of_;  // by the node that joins its heads
};

}  // namespace

void fuse_heads(ir::Graph& graph, FusionContext& context) {
  graph = SideBySide(graph, context).run();
  drop_unused(graph);
}

}  // namespace modelport::passes
