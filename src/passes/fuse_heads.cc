// Attention between tokens whose heads lie side by side, as encoders have it: onnxruntime's kernels
// take and give them so, and nothing is turned around them.
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
// Up to so many, ONNX's attention is quicker than onnxruntime's own, which goes block by block and
// keeps no table of scores. Both took as long between 768 and 1,024.
constexpr std::int64_t kFewKeys = 768;

class SideBySide {
 public:
  SideBySide(const ir::Graph& graph, FusionContext& context)
      : graph_(graph),
        context_(context),
        rebuild_(graph),
        users_(graph),
        ranges_(shape::ranges_of(graph.dims)) {
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

  /// Empty where heads can be taken as they lie.
  std::string objection(const ir::Node& node) const {
    for (std::size_t i = 0; i < 3; ++i) {
      const ir::ValueId heads = input_of(node, i);
      if (!type(heads).shape[1].is_constant() || !side_by_side(heads))
        return "its heads are not made side by side";
    }
    return {};
  }

  /// Whether onnxruntime's own operator computes the same, and not slower. Of rows that see nothing
  /// it gives something else than zeros.
  bool suits_own_operator(const ir::Node& node) const {
    const auto& q = type(input_of(node, 0));
    const auto& k = type(input_of(node, 1));
    const auto& v = type(input_of(node, 2));
    const bool sees_all = input_count(node) == 3 && node.find("is_causal") == nullptr;
    const bool alike = q.shape[1] == k.shape[1] && q.shape[1] == v.shape[1];
    const bool few = shape::bounds(k.shape[2], ranges_).hi <= kFewKeys;
    return sees_all && alike && q.dtype == Dtype::f32 && !few;
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
    for (std::size_t i = 0; i < input_count(attention); ++i) {
      const ir::ValueId given = input_of(attention, i);
      inputs.push_back(rebuild_(i < 3 ? *side_by_side(given) : given));
    }
    const auto heads = [&](std::size_t i) { return type(input_of(attention, i)).shape[1]; };
    const bool own = suits_own_operator(attention);
    std::vector<ir::NamedArg> attributes;
    if (own) {
      attributes.push_back({"num_heads", {heads(0)}});
    } else {
      attributes = {{"q_num_heads", {heads(0)}}, {"kv_num_heads", {heads(1)}}};
    }
    for (const std::string_view kept : {"scale", "is_causal"}) {
      if (const ir::Arg* arg = attention.find(kept))
        attributes.push_back({std::string(kept), *arg});
    }
    const std::string op = own ? "com.microsoft.MultiHeadAttention" : "onnx.Attention";
    const ir::ValueId result =
        rebuild_.emit(op, inputs, std::move(attributes), type(joined.results[0]), attention.place);
    rebuild_.replace(joined.results[0], result);
  }

  const ir::Graph& graph_;
  FusionContext& context_;
  Rebuild rebuild_;
  ir::Users users_;
  shape::Ranges ranges_;
  std::map<ir::NodeId, ir::NodeId> attention_of_;  // by the node that joins its heads
};

}  // namespace

void fuse_heads(ir::Graph& graph, FusionContext& context) {
  graph = SideBySide(graph, context).run();
  drop_unused(graph);
}

}  // namespace modelport::passes
