#include "ops/fusions/needless_masks.h"

#include <algorithm>
#include <map>

#include "ops/fusions/elements.h"
#include "ops/table/schema.h"
#include "shape/program_dims.h"

namespace modelport::ops::fusions {
namespace {

constexpr std::string_view kMask = "attn_mask";

class Masks {
 public:
  Masks(const ir::Graph& graph, const std::set<ir::ValueId>& true_constants)
      : graph_(graph), true_constants_(true_constants), dims_(shape::dims_of(graph.dims)) {}

  /// The same mask serves many layers.
  bool hides_nothing(ir::ValueId mask) {
    const auto [known, added] = known_.try_emplace(mask, false);
    if (added) known->second = is_true(mask);
    return known->second;
  }

 private:
  bool is_true(ir::ValueId mask) {
    const ir::TensorType& type = graph_.value(mask).tensor();
    if (type.dtype != Dtype::boolean) return false;
    Index index;
    while (index.size() < type.shape.size()) index.push_back(place(index.size()));
    const KnownNumbers none;
    Elements elements(graph_, none);
    return holds(elements, elements.at(mask, index));
  }

  /// Any place along an axis.
  shape::Int place(std::size_t axis) {
    while (places_.size() <= axis) places_.push_back(dims_.fresh("'place", 0, {.lo = 0}));
    return places_[axis];
  }

  bool holds(const Elements& elements, TermId id) const {
    const Term& term = elements[id];
    if (term.kind == Term::Kind::element) return true_constants_.contains(term.value);
    if (term.is("and")) {
      return std::ranges::all_of(term.parts, [&](TermId part) { return holds(elements, part); });
    }
    if (!term.is("at_least_zero")) return false;
    const shape::Int& number = elements[term.parts[0]].number;
    return dims_.decide(shape::Bool::compare(shape::Compare::ge, number, 0)) == true;
  }

  const ir::Graph& graph_;
  const std::set<ir::ValueId>& true_constants_;
  shape::Dims dims_;
  std::vector<shape::Int> places_;
  std::map<ir::ValueId, bool> known_;
};

bool takes_mask(const ir::Node& node) {
  const OpDef* row = find_op(node.op);
  return row != nullptr && schema_of(*row).find(kMask) != nullptr &&
         schema_of(*row).find("query") != nullptr;
}

/// Whether queries have every row that the mask has: else the mask makes more of them.
bool is_spread_over_queries(const ir::Graph& graph, ir::ValueId mask, ir::ValueId query) {
  const auto& of_mask = graph.value(mask).tensor().shape;
  const auto& of_query = graph.value(query).tensor().shape;
  if (of_mask.size() > of_query.size()) return false;
  const std::size_t missing = of_query.size() - of_mask.size();
  for (std::size_t axis = 0; axis + 2 < of_mask.size(); ++axis) {
    if (!(of_mask[axis] == shape::Int(1)) && !(of_mask[axis] == of_query[axis + missing]))
      return false;
  }
  return true;
}

}  // namespace

void drop_needless_masks(ir::Graph& graph, const std::set<ir::ValueId>& true_constants) {
  Masks masks(graph, true_constants);
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
    ir::Node& node = graph.node({i});
    const ir::Arg* mask = node.find(kMask);
    if (mask == nullptr || mask->is_none() || !takes_mask(node)) continue;
    const ir::ValueId value = *mask->get<ir::ValueId>();
    const ir::ValueId query = *node.find("query")->get<ir::ValueId>();
    if (!is_spread_over_queries(graph, value, query) || !masks.hides_nothing(value)) continue;
    std::erase_if(node.args, [](const ir::NamedArg& arg) { return arg.name == kMask; });
  }
}

}  // namespace modelport::ops::fusions
