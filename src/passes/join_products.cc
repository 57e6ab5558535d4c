// Products of one tensor with several weights, as queries, keys and values are made, become one
// product with the weights one after the other. A step of one token spends a fifth of such a
// product on calling its kernel and on parting its work among threads.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/users.h"
#include "passes/rebuild.h"
#include "passes/rewrite.h"
#include "passes/runtime_fusions.h"
#include "passes/weight_products.h"

namespace modelport::passes {
namespace {

/// Weights of a product beside which calling its kernel takes no time, while taking the results
/// apart takes as long as ever.
constexpr std::int64_t kLarge = 2 << 20;

constexpr std::string_view kFewBits = "com.microsoft.MatMulNBits";
constexpr std::string_view kAsStored = "com.microsoft.FusedMatMul";

/// A product, and the sum with a bias where one follows.
struct Product {
  ir::NodeId node;
  ir::ValueId x;
  std::vector<ir::ValueId> weights;  // rows of each are rows of the product's weight
  ir::ValueId bias;                  // of it, and the node that adds it; or none
  ir::NodeId sum;
};

class JoinedProducts {
 public:
  JoinedProducts(const ir::Graph& graph, FusionContext& context)
      : graph_(graph), context_(context), rebuild_(graph), users_(graph) {
    find_groups();
  }

  ir::Graph run() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const auto group = by_first_.find(ir::NodeId{i});
      if (group != by_first_.end()) {
        join(*group->second);
      } else if (!done_.contains({i})) {
        rebuild_.copy(graph_.node({i}));
      }
    }
    return std::move(rebuild_).finish();
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }
  const ir::Node& node(const Product& product) const { return graph_.node(product.node); }
  shape::Int rows(const Product& product) const { return type(product.weights[0]).shape[0]; }

  bool is_large(const Product& product) const {
    const auto columns = type(product.x).shape.back().constant();
    return columns && *columns * rows(product).constant().value() >= kLarge;
  }

  void find_groups() {
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      auto product = product_at({i});
      if (!product) continue;
      find_bias(*product);
      groups_[{product->x, kind_of(*product)}].push_back(std::move(*product));
    }
    for (const auto& [key, group] : groups_) {
      if (group.size() < 2 ||
          std::ranges::all_of(group, [&](const Product& product) { return is_large(product); }))
        continue;
      by_first_[group[0].node] = &group;
      for (const Product& product : group) done_.insert(product.node);
    }
  }

  std::optional<Product> product_at(ir::NodeId id) const {
    const ir::Node& node = graph_.node(id);
    Product found{.node = id, .x = {}, .weights = {}, .bias = {}, .sum = {}};
    if (node.op == kFewBits) {
      found.x = input_of(node, 0);
      for (std::size_t i = 1; i < input_count(node); ++i)
        found.weights.push_back(input_of(node, i));
    } else if (const auto product = weight_product(graph_, node);
               product && node.op == "onnx.MatMul" && type(node.results[0]).dtype == Dtype::f32 &&
               users_.only(input_of(node, 1))) {
      found.x = product->input;
      found.weights = {product->weight};
    } else {
      return std::nullopt;
    }
    const bool own = std::ranges::all_of(found.weights, [&](ir::ValueId w) { return is_own(w); });
    return own && !found.weights.empty() ? std::optional(found) : std::nullopt;
  }

  /// A tensor of the file that nothing else reads, or it would be stored twice.
  bool is_own(ir::ValueId id) const {
    if (id == ir::ValueId{} || !users_.only(id)) return false;
    const ir::Value& value = graph_.value(id);
    if (value.origin == ir::Origin::weight)
      return value.weight_kind == ir::WeightKind::parameter && value.tensor().shape.size() >= 2;
    return value.origin == ir::Origin::node &&
           graph_.node(value.producer).op == "modelport.quantized";
  }

  void find_bias(Product& product) const {
    const auto user = users_.only(node(product).results[0]);
    if (!user || graph_.node(*user).op != "onnx.Add") return;
    const ir::Node& sum = graph_.node(*user);
    if (type(sum.results[0]) != type(node(product).results[0])) return;
    for (std::size_t i = 0; i < 2; ++i) {
      const ir::ValueId bias = input_of(sum, i);
      const ir::Value& value = graph_.value(bias);
      if (value.origin == ir::Origin::weight && value.tensor().shape.size() == 1 &&
          value.tensor().shape[0] == rows(product) && users_.only(bias)) {
        product.bias = bias;
        product.sum = *user;
      }
    }
  }

  /// What products must have in common to be one.
  std::string kind_of(const Product& product) const {
    std::string kind = fmt::format("{} {}", node(product).op, product.weights.size());
    for (const ir::ValueId weight : product.weights) {
      kind += fmt::format(" {}", name(type(weight).dtype));
      for (std::size_t axis = 1; axis < type(weight).shape.size(); ++axis)
        kind += fmt::format(",{}", type(weight).shape[axis].constant().value());
    }
    for (const std::string_view attribute : {"bits", "block_size", "accuracy_level"}) {
      if (const ir::Arg* arg = node(product).find(attribute))
        kind += fmt::format(" {}", arg->get<shape::Int>()->constant().value());
    }
    return kind;
  }

  void join(const std::vector<Product>& group) {
    const ir::Node& first = node(group[0]);
    std::vector<ir::ValueId> inputs{rebuild_(group[0].x)};
    for (std::size_t i = 0; i < group[0].weights.size(); ++i)
      inputs.push_back(joined(group, [&](const Product& product) { return product.weights[i]; }));
    std::vector<ir::Type> types;
    ir::TensorType whole = type(first.results[0]);
    whole.shape.back() = shape::Int(0);
    std::vector<std::int64_t> sizes;
    for (const Product& product : group) {
      types.emplace_back(type(node(product).results[0]));
      sizes.push_back(rows(product).constant().value());
      whole.shape.back() = whole.shape.back() + rows(product);
    }
    const bool few_bits = first.op == kFewBits;
    std::vector<ir::NamedArg> attributes{{"transB", {shape::Int(1)}}};
    if (few_bits) attributes = attributes_with_rows(first, whole.shape.back());
    ir::ValueId made = rebuild_.emit(std::string(few_bits ? kFewBits : kAsStored), inputs,
                                     std::move(attributes), whole, first.place);
    const bool biased = std::ranges::all_of(
        group, [](const Product& product) { return product.bias != ir::ValueId{}; });
    if (biased) {
      const auto bias = joined(group, [](const Product& product) { return product.bias; });
      made = rebuild_.emit("onnx.Add", {made, bias}, {}, whole, first.place);
    }
    const auto parts = rebuild_.add(
        "onnx.Split",
        {{"inputs", {ir::ArgList{{made}, {rebuild_.ints(sizes)}}}}, {"axis", {shape::Int(-1)}}},
        std::move(types), first.place);
    for (std::size_t i = 0; i < group.size(); ++i) {
      rebuild_.replace((biased ? graph_.node(group[i].sum) : node(group[i])).results[0], parts[i]);
      if (biased) done_.insert(group[i].sum);
    }
    context_.notes.push_back({"products of one tensor", "", graph_.place(first.place).module_path});
  }

  static std::vector<ir::NamedArg> attributes_with_rows(const ir::Node& node,
                                                        const shape::Int& rows) {
    std::vector<ir::NamedArg> attributes;
    for (const ir::NamedArg& named : node.args) {
      if (named.name == "N") {
        attributes.push_back({"N", {rows}});
      } else if (named.name != "inputs") {
        attributes.push_back(named);
      }
    }
    return attributes;
  }

  /// One tensor of the file.
  template <class Weight>
  ir::ValueId joined(const std::vector<Product>& group, const Weight& weight_of) {
    ir::ArgList parts;
    ir::TensorType whole = type(weight_of(group[0]));
    whole.shape[0] = shape::Int(0);
    for (const Product& product : group) {
      const ir::ValueId weight = weight_of(product);
      copy_early(weight);
      parts.push_back({rebuild_(weight)});
      whole.shape[0] = whole.shape[0] + type(weight).shape[0];
    }
    return rebuild_.add("modelport.joined", {{"inputs", {std::move(parts)}}}, {whole},
                        node(group[0]).place)[0];
  }

  /// What makes the codes of a later product stands after the first one.
  void copy_early(ir::ValueId weight) {
    const ir::Value& value = graph_.value(weight);
    if (value.origin != ir::Origin::node || rebuild_(weight) != ir::ValueId{}) return;
    rebuild_.copy(graph_.node(value.producer));
    done_.insert(value.producer);
  }

  const ir::Graph& graph_;
  FusionContext& context_;
  Rebuild rebuild_;
  ir::Users users_;
  std::map<std::pair<ir::ValueId, std::string>, std::vector<Product>> groups_;
  std::map<ir::NodeId, const std::vector<Product>*> by_first_;
  std::set<ir::NodeId> done_;
};

/// Whether it reads a few tokens at a time, after those in its cache. Of long texts products take
/// as long apart, and parting what they give costs something.
bool decodes(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const ir::Node& node) {
    return node.op == "com.microsoft.GroupQueryAttention";
  });
}

}  // namespace

void join_products(ir::Graph& graph, FusionContext& context) {
  if (!decodes(graph)) return;
  graph = JoinedProducts(graph, context).run();
  drop_unused(graph);
}

}  // namespace modelport::passes
