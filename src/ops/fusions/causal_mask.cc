#include "ops/fusions/causal_mask.h"

namespace modelport::ops::fusions {

std::variant<CausalMask, std::string> read_causal_mask(const ir::Graph& graph,
                                                       const KnownNumbers& known,
                                                       ir::ValueId mask) {
  const auto& shape = graph.value(mask).tensor().shape;
  if (shape.size() != 4 || !(shape[1] == shape::Int(1)))
    return "the mask is not the same for all heads";
  const shape::Int row = shape::Int::symbol("'row");
  const shape::Int query = shape::Int::symbol("'query");
  const shape::Int key = shape::Int::symbol("'key");
  const shape::Int past = shape[3] - shape[2];
  Elements elements(graph, known);
  const auto number = [&](TermId id) { return elements[id].real; };
  TermId id = elements.at(mask, {row, 0, query, key});
  if (elements[id].is("where")) {
    const auto& parts = elements[id].parts;
    const auto plain = [&](std::size_t i) { return elements[parts[i]].kind == Term::Kind::real; };
    if (!plain(1) || !plain(2) || number(parts[1]) != 0 || number(parts[2]) > kHiddenScore)
      return "the mask adds more to scores than zero and minus infinity";
    id = parts[0];
  }
  const Term& whole = elements[id];
  CausalMask found;
  bool causal = false;
  for (const TermId part : whole.is("and") ? whole.parts : std::vector{id}) {
    const Term& term = elements[part];
    if (term.is("at_least_zero")) {
      const shape::Int& difference = elements[term.parts[0]].number;
      const auto width = (difference - (key - query - past)).constant();
      if (difference == query + past - key) {
        causal = true;
      } else if (width && *width >= 0) {
        found.window = *width + 1;
      } else {
        return "the mask compares places in a way of its own";
      }
      continue;
    }
    if (!term.is("nonzero") || elements[term.parts[0]].kind != Term::Kind::element)
      return "the mask hides keys by more than their place and their padding";
    const Term& padding = elements[term.parts[0]];
    if (padding.index != Index{row, key} || found.padding != ir::ValueId{})
      return "the mask hides keys by more than their place and their padding";
    found.padding = padding.value;
  }
  if (!causal) return "the mask lets a query see keys after it";
  if (found.padding == ir::ValueId{}) return "no mask of the inputs says how long a row is";
  return found;
}

}  // namespace modelport::ops::fusions
