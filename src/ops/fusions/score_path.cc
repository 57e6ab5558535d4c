#include "ops/fusions/score_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/fusions/causal_mask.h"
#include "ops/fusions/repeated_heads.h"
#include "shape/program_dims.h"

namespace modelport::ops::fusions {
namespace {

using Sizes = std::vector<shape::Int>;

/// A bound this low is one of the type itself.
constexpr double kLowestOfHalf = -65504.0, kLowestOfFloat = -3e38;

enum class Effect { adds, hides, bounds, scales, divides };

/// One way for scores to go through an operator; those that commute have two.
struct StepRule {
  std::string_view op, scores, operand, number;
  Effect effect;
};
constexpr std::array kRules{
    StepRule{"aten.add.Tensor", "self", "other", "", Effect::adds},
    StepRule{"aten.add.Tensor", "other", "self", "", Effect::adds},
    StepRule{"aten.div.Tensor", "self", "", "other", Effect::divides},
    StepRule{"aten.masked_fill.Scalar", "self", "mask", "value", Effect::hides},
    StepRule{"aten.masked_fill.Tensor", "self", "mask", "value", Effect::hides},
    StepRule{"aten.max.other", "self", "", "other", Effect::bounds},
    StepRule{"aten.maximum", "self", "", "other", Effect::bounds},
    StepRule{"aten.mul.Tensor", "self", "", "other", Effect::scales},
    StepRule{"aten.mul.Tensor", "other", "", "self", Effect::scales},
    StepRule{"aten.where.ScalarOther", "self", "condition", "other", Effect::hides},
    StepRule{"aten.where.ScalarSelf", "other", "condition", "self", Effect::hides},
    StepRule{"aten.where.self", "self", "condition", "other", Effect::hides},
    StepRule{"aten.where.self", "other", "condition", "self", Effect::hides},
};

constexpr std::array<std::string_view, 6> kSameElements{"aten.view",         "aten.reshape",
                                                        "aten._unsafe_view", "aten.to.dtype",
                                                        "aten.contiguous",   "aten.clone"};

std::string transposed(std::string_view keys, std::string_view axes_from_the_front) {
  std::string all;
  for (const std::string_view axes : {axes_from_the_front, std::string_view("dim0=-1, dim1=-2"),
                                      std::string_view("dim0=-2, dim1=-1")})
    all += fmt::format("{}aten.transpose.int({}, self={})", all.empty() ? "{" : " | ", axes, keys);
  return all + "}";
}

const std::vector<Pattern>& products() {
  static const std::vector<Pattern> parsed = [] {
    const std::string query = flattened("query"),
                      keys = transposed(flattened("keys"), "dim0=1, dim1=2");
    return std::vector<Pattern>{
        parse_pattern("aten.matmul(self=query, other=" + transposed_keys(maybe_repeated("keys")) +
                      ")"),
        parse_pattern("aten.bmm(self=" + query + ", mat2=" + keys + ")"),
        parse_pattern("aten.baddbmm(self=added, batch1=" + query + ", batch2=" + keys +
                      ", beta=1, alpha=scale)"),
    };
  }();
  return parsed;
}

class Walk {
 public:
  Walk(const ir::Graph& graph, const KnownNumbers& known) : graph_(graph), known_(known) {}

  std::optional<ScorePath> from(ir::ValueId weights) {
    const ir::Node* softmax = producer(weights);
    while (softmax != nullptr && moves_nothing(*softmax))
      softmax = producer(*softmax->find("self")->get<ir::ValueId>());
    if (softmax == nullptr || softmax->op != "aten.softmax.int") return std::nullopt;
    const ir::ValueId scores = *softmax->find("self")->get<ir::ValueId>();
    const auto axis = softmax->find("dim")->get<shape::Int>()->constant();
    const auto last = static_cast<std::int64_t>(type(scores).shape.size()) - 1;
    if ((axis != -1 && axis != last) || !follow(scores) || fails_ || !measure())
      return std::nullopt;
    return ScorePath{*product_, scale_, steps_};
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  const ir::Node* producer(ir::ValueId id) const {
    const ir::Value& value = graph_.value(id);
    return value.origin == ir::Origin::node ? &graph_.node(value.producer) : nullptr;
  }

  bool moves_nothing(const ir::Node& node) const {
    if (std::ranges::find(kSameElements, node.op) == kSameElements.end()) return false;
    const auto &before = type(*node.find("self")->get<ir::ValueId>()).shape,
               &after = type(node.results[0]).shape;
    const auto fits = [](const Sizes& sizes) { return sizes.size() == 3 || sizes.size() == 4; };
    return fits(before) && fits(after) &&
           std::equal(before.end() - 2, before.end(), after.end() - 2);
  }

  std::optional<double> number(const ir::Arg* arg) const {
    if (arg == nullptr) return std::nullopt;
    if (const double* real = arg->get<double>()) return *real;
    if (const auto* integer = arg->get<shape::Int>()) {
      const auto constant = integer->constant();
      return constant ? std::optional<double>(static_cast<double>(*constant)) : std::nullopt;
    }
    const auto* id = arg->get<ir::ValueId>();
    if (id == nullptr || graph_.value(*id).origin != ir::Origin::weight) return std::nullopt;
    const auto known = known_.find(graph_.value(*id).name);
    return known == known_.end() ? std::nullopt : std::optional<double>(known->second);
  }

  /// From the softmax back to the product; steps come out in the order of the computation.
  bool follow(ir::ValueId scores) {
    const ir::Node* node = producer(scores);
    if (node == nullptr || !is_floating(type(scores).dtype)) return false;
    if (makes(*node)) return true;
    if (moves_nothing(*node)) return follow(*node->find("self")->get<ir::ValueId>());
    return std::ranges::any_of(kRules, [&](const StepRule& rule) {
      const ir::Arg* inner = rule.op == node->op ? node->find(rule.scores) : nullptr;
      const auto* id = inner == nullptr ? nullptr : inner->get<ir::ValueId>();
      if (id == nullptr || !allows(rule, *node) || !follow(*id)) return false;
      take(rule, *node);
      return true;
    });
  }

  bool makes(const ir::Node& node) {
    for (const Pattern& pattern : products()) {
      const auto found = find(pattern, graph_, node, kUsesNotAsked);
      if (!found || !found->is_value("query") || !found->is_value("keys")) continue;
      if (found->type("query").shape.size() != 4 || found->type("keys").shape.size() != 4) continue;
      product_.emplace(*found);
      product_sizes_ = type(node.results[0]).shape;
      if (found->has("scale")) {
        fails_ |= !found->number("scale");
        scale_ = found->number("scale").value_or(1);
      }
      if (found->has("added")) push(node, {"", "", "self", "", Effect::adds});
      return true;
    }
    return false;
  }

  bool allows(const StepRule& rule, const ir::Node& node) const {
    if (rule.effect == Effect::adds) {
      const ir::Arg* alpha = node.find("alpha");
      const auto* added = node.find(rule.operand)->get<ir::ValueId>();
      return added != nullptr && (alpha == nullptr || number(alpha) == 1);
    }
    const auto found = number(node.find(rule.number));
    if (!found) return false;
    switch (rule.effect) {
      case Effect::hides:
        return *found <= kHiddenScore;
      case Effect::bounds:
        return *found <=
               (type(node.results[0]).dtype == Dtype::f16 ? kLowestOfHalf : kLowestOfFloat);
      case Effect::scales:
      case Effect::divides:
        return *found > 0 && std::isfinite(*found);
      case Effect::adds:
        break;
    }
    __builtin_unreachable();
  }

  /// After the steps before it. A score that was filled in has to stay as low as it was.
  void take(const StepRule& rule, const ir::Node& node) {
    if (rule.effect == Effect::scales || rule.effect == Effect::divides) {
      fails_ |= hides_;
      const double factor = *number(node.find(rule.number));
      scale_ = rule.effect == Effect::scales ? scale_ * factor : scale_ / factor;
    }
    hides_ |= rule.effect == Effect::hides;
    // Of zeros alone other steps make zeros.
    if (!steps_.empty() || !rule.operand.empty()) push(node, rule);
  }

  void push(const ir::Node& node, const StepRule& rule) {
    steps_.push_back({.node = graph_.value(node.results[0]).producer,
                      .scores = rule.scores,
                      .operand = rule.operand,
                      .adds = rule.effect == Effect::adds});
  }

  /// Sizes of all steps; whether they are those of scores.
  bool measure() {
    const Sizes &query = product_->type("query").shape, &keys = product_->type("keys").shape;
    rows_ = query[0], heads_ = query[1];
    const Sizes scores{rows_, heads_, query[2], keys[2]};
    const bool flat = product_sizes_.size() == 3;
    if (as_scores(in_two_axes(product_sizes_, flat), scores) != scores ||
        (flat && !(keys[1] == heads_)))
      return false;
    Sizes sizes(4, shape::Int(1));
    for (ScoreStep& step : steps_) {
      const ir::Node& node = graph_.node(step.node);
      const Sizes& made = type(node.results[0]).shape;
      if (as_scores(in_two_axes(made, made.size() == 3), scores) != scores) return false;
      if (!step.operand.empty()) {
        const Sizes& given = type(*node.find(step.operand)->get<ir::ValueId>()).shape;
        const auto operand = as_scores(in_two_axes(given, made.size() == 3), scores);
        const auto grown = operand ? broadcast(sizes, *operand) : std::nullopt;
        if (!grown) return false;
        step.operand_sizes = *operand;
        sizes = *grown;
      }
      step.sizes = sizes;
    }
    return true;
  }

  /// With four axes. `flat`: beside scores whose rows and heads are in one axis.
  std::optional<Sizes> in_two_axes(Sizes sizes, bool flat) const {
    if (flat && sizes.size() == 3 && sizes[0] == rows_ * heads_)
      return Sizes{rows_, heads_, sizes[1], sizes[2]};
    if (sizes.size() > 4 || (flat && sizes.size() > 2 && !(sizes[0] == shape::Int(1))))
      return std::nullopt;
    sizes.insert(sizes.begin(), 4 - sizes.size(), shape::Int(1));
    return sizes;
  }

  /// With the sizes of scores where the program's conditions make others equal to them: a table
  /// that is cut has min(all tokens, its length) columns.
  std::optional<Sizes> as_scores(std::optional<Sizes> sizes, const Sizes& scores) {
    for (std::size_t i = 0; sizes && i < scores.size(); ++i) {
      shape::Int& size = (*sizes)[i];
      if (!size.constant() && !(size == scores[i]) &&
          dims().decide(shape::Bool::compare(shape::Compare::eq, size, scores[i])) == true)
        size = scores[i];
    }
    return sizes;
  }

  const shape::Dims& dims() {
    if (!dims_) dims_.emplace(shape::dims_of(graph_.dims, graph_.guards));
    return *dims_;
  }

  static std::optional<Sizes> broadcast(const Sizes& a, const Sizes& b) {
    const shape::Int one(1);
    Sizes found;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(a[i] == b[i]) && !(a[i] == one) && !(b[i] == one)) return std::nullopt;
      found.push_back(a[i] == one ? b[i] : a[i]);
    }
    return found;
  }

  const ir::Graph& graph_;
  const KnownNumbers& known_;
  std::optional<shape::Dims> dims_;  // made when they are asked
  std::optional<Found> product_;
  double scale_ = 1;
  std::vector<ScoreStep> steps_;
  Sizes product_sizes_;
  bool hides_ = false;
  bool fails_ = false;
  shape::Int rows_ = 1, heads_ = 1;
};

}  // namespace

std::string flattened(std::string_view what) {
  const std::string name(what);
  return "{aten.reshape(shape=_, self=" + name + ") | aten.view(size=_, self=" + name + ")}";
}

std::string transposed_keys(std::string_view keys) { return transposed(keys, "dim0=2, dim1=3"); }

std::optional<ScorePath> find_score_path(const ir::Graph& graph, const KnownNumbers& known,
                                         ir::ValueId weights) {
  return Walk(graph, known).from(weights);
}

}  // namespace modelport::ops::fusions
