#include "ops/fusions/rotary.h"

#include <algorithm>
#include <set>

namespace modelport::ops::fusions {
namespace {

/// Values that a value is computed from, nearest first. A rotation is no deeper than this.
std::vector<ir::ValueId> ancestors(const ir::Graph& graph, ir::ValueId from) {
  constexpr std::size_t kMost = 60;
  std::vector<ir::ValueId> found{from};
  std::set<ir::ValueId> seen{from};
  for (std::size_t i = 0; i < found.size() && found.size() < kMost; ++i) {
    const ir::Value& value = graph.value(found[i]);
    if (value.origin != ir::Origin::node) continue;
    for (const ir::NamedArg& named : graph.node(value.producer).args) {
      ir::for_each_value(named.arg, [&](ir::ValueId id) {
        if (seen.insert(id).second) found.push_back(id);
      });
    }
  }
  found.erase(found.begin());
  return found;
}

/// An element of x times a factor, or times nothing.
struct Summand {
  bool minus = false;
  std::int64_t channel = 0;
  std::optional<TermId> factor;
};

class Reader {
 public:
  Reader(const ir::Graph& graph, const KnownNumbers& known, ir::ValueId turned, ir::ValueId x)
      : graph_(graph), x_(x), turned_(turned), elements_(graph, known, x) {}

  std::optional<Rotary> read() {
    const auto& shape = graph_.value(turned_).tensor().shape;
    const std::int64_t channels = shape[3].constant().value_or(0);
    for (std::int64_t c = 0; c < channels; ++c) {
      summands_.clear();
      if (!collect(elements_.at(turned_, {row_, head_, token_, c}), false)) return std::nullopt;
      channels_.push_back(summands_);
    }
    Rotary found{.x = x_};
    found.pairs = turned_pairs();
    if (found.pairs == 0) return std::nullopt;
    if (!reads_pairs(found, false)) {
      found.interleaved = true;
      if (!reads_pairs(found, true)) return std::nullopt;
    }
    if (!finds_tables(found)) return std::nullopt;
    return found;
  }

 private:
  /// The term as a sum of elements of x times factors that x has no part in.
  bool collect(TermId id, bool minus, std::optional<TermId> factor = std::nullopt) {
    const Term term = elements_[id];
    if (!elements_.has_leaf(id)) return false;
    if (term.kind == Term::Kind::element) {
      const auto channel = term.index[3].constant();
      if (!channel || term.index[0] != row_ || term.index[1] != head_ || term.index[2] != token_)
        return false;
      summands_.push_back({minus, *channel, factor});
      return true;
    }
    if (term.is("neg")) return collect(term.parts[0], !minus, factor);
    if (term.is("add") && !factor)
      return collect(term.parts[0], minus) && collect(term.parts[1], minus);
    if (term.is("sub") && !factor)
      return collect(term.parts[0], minus) && collect(term.parts[1], !minus);
    if (!term.is("mul") || factor) return false;
    const bool first = elements_.has_leaf(term.parts[0]);
    if (first && elements_.has_leaf(term.parts[1])) return false;
    return collect(term.parts[first ? 0 : 1], minus, term.parts[first ? 1 : 0]);
  }

  /// How many pairs there are, where all channels behind them are as they were.
  std::int64_t turned_pairs() const {
    std::size_t turned = 0;
    while (turned < channels_.size() && channels_[turned].size() == 2) ++turned;
    for (std::size_t c = turned; c < channels_.size(); ++c) {
      const auto& one = channels_[c];
      if (one.size() != 1 || one[0].minus || one[0].factor ||
          one[0].channel != static_cast<std::int64_t>(c))
        return 0;
    }
    return turned % 2 == 0 ? static_cast<std::int64_t>(turned / 2) : 0;
  }

  /// channel = x[channel] * cos ± x[other] * sin
  bool reads(std::int64_t channel, std::int64_t other, bool minus, TermId& cos, TermId& sin) const {
    for (const auto& [own, across] : {std::pair{0, 1}, std::pair{1, 0}}) {
      const Summand& a = channels_[static_cast<std::size_t>(channel)][own];
      const Summand& b = channels_[static_cast<std::size_t>(channel)][across];
      if (a.channel != channel || b.channel != other || a.minus || b.minus != minus) continue;
      if (!a.factor || !b.factor) continue;
      cos = *a.factor;
      sin = *b.factor;
      return true;
    }
    return false;
  }

  bool reads_pairs(const Rotary& rotary, bool interleaved) {
    cos_.clear();
    sin_.clear();
    for (std::int64_t k = 0; k < rotary.pairs; ++k) {
      const std::int64_t a = interleaved ? 2 * k : k;
      const std::int64_t b = interleaved ? 2 * k + 1 : k + rotary.pairs;
      TermId cos, sin, cos_of_b, sin_of_b;
      if (!reads(a, b, true, cos, sin) || !reads(b, a, false, cos_of_b, sin_of_b)) return false;
      if (cos != cos_of_b || sin != sin_of_b) return false;
      cos_.push_back(cos);
      sin_.push_back(sin);
    }
    return true;
  }

  bool finds_tables(Rotary& rotary) {
    const auto values = ancestors(graph_, turned_);
    for (const std::int64_t step : {1, 2}) {
      rotary.step = step;
      rotary.cos = table(values, cos_, step);
      rotary.sin = table(values, sin_, step);
      if (rotary.cos != ir::ValueId{} && rotary.sin != ir::ValueId{})
        return positions(rotary, cos_) && positions(rotary, sin_);
    }
    return false;
  }

  ir::ValueId table(const std::vector<ir::ValueId>& values, const std::vector<TermId>& columns,
                    std::int64_t step) {
    const auto pairs = static_cast<std::int64_t>(columns.size());
    const auto& tokens = graph_.value(turned_).tensor().shape[2];
    for (const ir::ValueId id : values) {
      const auto& type = graph_.value(id).type;
      const auto* tensor = std::get_if<ir::TensorType>(&type);
      if (tensor == nullptr || tensor->shape.size() != 3 || !(tensor->shape[1] == tokens)) continue;
      if (tensor->dtype != graph_.value(turned_).tensor().dtype) continue;
      const auto width = tensor->shape[2].constant();
      if (!width || *width <= step * (pairs - 1)) continue;
      std::int64_t k = 0;
      while (k < pairs &&
             elements_.at(id, {row_, token_, step * k}) == columns[static_cast<std::size_t>(k)])
        ++k;
      if (k == pairs) return id;
    }
    return {};
  }

  /// Whether the columns are functions of the token's position, and of weights.
  bool positions(Rotary& rotary, const std::vector<TermId>& columns) const {
    return std::ranges::all_of(columns, [&](TermId id) { return only_positions(rotary, id); });
  }

  bool only_positions(Rotary& rotary, TermId id) const {
    const Term& term = elements_[id];
    for (const TermId part : term.parts) {
      if (!only_positions(rotary, part)) return false;
    }
    if (term.kind != Term::Kind::element) return term.kind != Term::Kind::number;
    const ir::Value& value = graph_.value(term.value);
    if (value.origin == ir::Origin::weight)
      return std::ranges::all_of(term.index, [](const auto& x) { return x.is_constant(); });
    if (value.origin != ir::Origin::input || term.index != Index{row_, token_}) return false;
    if (rotary.positions == ir::ValueId{}) rotary.positions = term.value;
    return rotary.positions == term.value && is_integral(value.tensor().dtype);
  }

  const ir::Graph& graph_;
  ir::ValueId x_, turned_;
  Elements elements_;
  shape::Int row_ = shape::Int::symbol("'row");
  shape::Int head_ = shape::Int::symbol("'head");
  shape::Int token_ = shape::Int::symbol("'token");
  std::vector<Summand> summands_;
  std::vector<std::vector<Summand>> channels_;
  std::vector<TermId> cos_, sin_;  // of each pair
};

}  // namespace

std::optional<Rotary> read_rotary(const ir::Graph& graph, const KnownNumbers& known,
                                  ir::ValueId turned) {
  const ir::TensorType& type = graph.value(turned).tensor();
  if (type.shape.size() != 4 || !type.shape[3].is_constant()) return std::nullopt;
  for (const ir::ValueId x : ancestors(graph, turned)) {
    const auto* other = std::get_if<ir::TensorType>(&graph.value(x).type);
    if (other == nullptr || !(*other == type)) continue;
    auto found = Reader(graph, known, turned, x).read();
    if (found && found->positions != ir::ValueId{}) return found;
  }
  return std::nullopt;
}

std::optional<std::vector<ir::NodeId>> chain_from(const ir::Graph& graph, ir::ValueId positions,
                                                  ir::ValueId value) {
  std::set<std::uint32_t> nodes;
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::ValueId id = open.back();
    open.pop_back();
    const ir::Value& found = graph.value(id);
    if (found.origin == ir::Origin::input && id != positions) return std::nullopt;
    if (found.origin != ir::Origin::node || !nodes.insert(found.producer.index).second) continue;
    ir::for_each_operand(graph.node(found.producer),
                         [&](ir::ValueId operand) { open.push_back(operand); });
  }
  std::vector<ir::NodeId> chain;
  for (const std::uint32_t index : nodes) chain.push_back({index});
  return chain;
}

ir::ValueId add_columns(ir::Graph& graph, ir::ValueId table, const Rotary& rotary) {
  const ir::TensorType whole = graph.value(table).tensor();
  const auto add = [&](std::string op, std::vector<ir::NamedArg> args, shape::Int columns) {
    const ir::NodeId node = graph.add_node(
        std::move(op), std::move(args), {ir::TensorType{whole.dtype, {whole.shape[1], columns}}});
    return graph.node(node).results[0];
  };
  const ir::ValueId rows = add(
      "aten.select.int", {{"self", {table}}, {"dim", {shape::Int(0)}}, {"index", {shape::Int(0)}}},
      whole.shape[2]);
  return add("aten.slice.Tensor",
             {{"self", {rows}},
              {"dim", {shape::Int(1)}},
              {"start", {shape::Int(0)}},
              {"end", {shape::Int(rotary.pairs * rotary.step)}},
              {"step", {shape::Int(rotary.step)}}},
             shape::Int(rotary.pairs));
}

}  // namespace modelport::ops::fusions
