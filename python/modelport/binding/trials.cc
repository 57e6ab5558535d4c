// Captures at other sizes, held against the first one: what of it they confirm, widen or forbid.
#include <pybind11/stl.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "binding/program.h"
#include "ir/symbols.h"
#include "shape/program_dims.h"
#include "shape/widen.h"
#include "signature/limits.h"

namespace modelport::binding {

namespace {

shape::Values sizes_of_example(const Program& program) {
  shape::Values values;
  for (const shape::Dim& dim : program.graph.dims) values.ints[dim.name] = dim.hint;
  return values;
}

/// The sizes of a trial's example, where they are not those of the first one.
shape::Bindings sizes_unlike(const Program& trial, const Program& first) {
  shape::Bindings sizes;
  for (const shape::Dim& dim : trial.graph.dims) {
    const auto same = std::ranges::find(first.graph.dims, dim.name, &shape::Dim::name);
    if (dim.from_data || same == first.graph.dims.end() || same->hint == dim.hint) continue;
    sizes[dim.name] = dim.hint;
  }
  return sizes;
}

std::vector<shape::OpenCondition> open_conditions_of(Program& program) {
  auto open = shape::open_conditions({program.graph.dims, program.graph.guards}, program.dims,
                                     program.elsewhere, program.tried);
  // One that was required may be known by its ranges, which not every proof finds again.
  std::erase_if(open, [&](const shape::OpenCondition& one) {
    return std::ranges::find(program.decided, one.guard.condition) != program.decided.end();
  });
  return open;
}

/// Takes over the sizes of a trial at other sizes of the symbols named, which does the same as the
/// program. `first` is the capture that was tried. False where the trial asked what the first one
/// did not come to ask: nothing is known of the other side, and nothing changes.
bool widen(Program& program, const Program& trial, const std::vector<std::string>& names,
           const Program& first) {
  const auto learned = shape::widen({program.graph.dims, program.graph.guards},
                                    {.dims = trial.dims,
                                     .widened = names,
                                     .known = first.dims.met(),
                                     .example = sizes_of_example(first)});
  if (!learned) return false;
  const shape::Bindings there = sizes_unlike(trial, first);
  for (const shape::Guard& guard : *learned) program.elsewhere.push_back({guard, there});
  program.tried.insert(program.tried.end(), trial.dims.met().begin(), trial.dims.met().end());
  program.tried.insert(program.tried.end(), first.dims.met().begin(), first.dims.met().end());
  return true;
}

/// Conditions that were asked and do not follow from what the program is valid for any more, each
/// with sizes that break it.
std::vector<std::map<std::string, std::int64_t>> open_conditions(Program& program) {
  std::vector<std::map<std::string, std::int64_t>> sizes;
  for (const shape::OpenCondition& open : open_conditions_of(program))
    sizes.emplace_back(open.broken_at.begin(), open.broken_at.end());
  return sizes;
}

/// The condition with this number is harmless, or becomes part of what the program is valid for.
void decide_condition(Program& program, std::size_t number, bool harmless) {
  const shape::Guard guard = open_conditions_of(program).at(number).guard;
  if (!harmless) shape::require({program.graph.dims, program.graph.guards}, guard);
  program.decided.push_back(guard.condition);
}

/// Symbols of the inputs that some condition besides their ranges concerns, each with a size that
/// breaks it while the others are as in the example.
std::vector<std::pair<std::string, std::int64_t>> sizes_against(const Program& program) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const shape::Guard& guard : program.graph.guards) {
    if (shape::depends_on_data(guard.condition, program.graph.dims)) continue;
    std::set<std::string, std::less<>> symbols;
    shape::collect_symbols(guard.condition, symbols);
    for (const shape::Dim& dim : program.graph.dims) {
      if (!symbols.contains(dim.name)) continue;
      const auto size = shape::size_against(guard.condition, dim, program.graph.guards,
                                            sizes_of_example(program));
      if (!size) continue;
      found.emplace_back(dim.name, *size);
      break;
    }
  }
  return found;
}

/// Stands for the sizes of another capture of the same model: its example, its ranges and the
/// conditions between sizes that it kept.
void take_validity(Program& program, const Program& other) {
  const shape::Bindings own = sizes_unlike(program, other);
  program.elsewhere = other.elsewhere;
  program.tried = other.tried;
  for (const shape::Guard& guard : program.dims.met()) program.elsewhere.push_back({guard, own});
  for (shape::Dim& dim : program.graph.dims) {
    const auto same = std::ranges::find(other.graph.dims, dim.name, &shape::Dim::name);
    if (same == other.graph.dims.end() || dim.from_data) continue;
    dim.hint = same->hint;
    if (same->range.lo > dim.range.lo) dim.lo_where = same->lo_where;
    if (same->range.hi < dim.range.hi) dim.hi_where = same->hi_where;
    dim.range = shape::intersect(dim.range, same->range);
  }
  for (const shape::Guard& guard : other.graph.guards) {
    const auto same = [&](const shape::Guard& mine) { return mine.condition == guard.condition; };
    if (shape::depends_on_data(guard.condition, other.graph.dims)) continue;
    if (std::ranges::none_of(program.graph.guards, same)) program.graph.guards.push_back(guard);
  }
}

/// Forgets the conditions between sizes that do not hold where some symbols have other sizes than
/// in the example of `first`.
void drop_conditions(Program& program, const std::map<std::string, std::int64_t>& changed,
                     const Program& first) {
  shape::Values values = sizes_of_example(first);
  for (const auto& [symbol, size] : changed) values.ints[symbol] = size;
  const auto broken = [&](const shape::Guard& guard) {
    return !shape::depends_on_data(guard.condition, first.graph.dims) &&
           shape::holds(guard.condition, values) == false;
  };
  std::erase_if(program.graph.guards, broken);
  std::erase_if(program.guards, broken);
}

/// Whether the conditions between sizes hold at these sizes.
bool admits(const Program& program, const std::map<std::string, std::int64_t>& sizes) {
  shape::Values values;
  values.ints.insert(sizes.begin(), sizes.end());
  return std::ranges::none_of(program.graph.guards, [&](const shape::Guard& guard) {
    return shape::holds(guard.condition, values) == false;
  });
}

/// Whether the tensors that the model made on its own are the same: they may depend on a size that
/// Python read.
bool same_constants(const Program& a, const Program& b) {
  for (const ir::ValueId id : a.graph.weights) {
    const ir::Value& weight = a.graph.value(id);
    if (weight.weight_kind != ir::WeightKind::constant) continue;
    const auto mine = a.weights.find(weight.name);
    const auto theirs = b.weights.find(weight.name);
    if (mine == a.weights.end() || theirs == b.weights.end()) continue;
    const at::Tensor& x = mine->second;
    const at::Tensor& y = theirs->second;
    if (x.is_meta() || y.is_meta()) continue;
    if (x.sizes() != y.sizes() || x.scalar_type() != y.scalar_type()) return false;
    if (!x.equal(y)) return false;
  }
  return true;
}

std::vector<shape::Guard> conditions_on_data(const ir::Graph& graph) {
  std::vector<shape::Guard> found;
  std::ranges::copy_if(graph.guards, std::back_inserter(found), [&](const auto& guard) {
    return shape::depends_on_data(guard.condition, graph.dims);
  });
  return found;
}

/// Which values are computed from the data of inputs or of state, not from sizes and weights alone.
std::vector<bool> values_from_data(const ir::Graph& graph) {
  std::vector<bool> from_data(graph.values().size());
  for (const ir::ValueId id : graph.inputs) from_data[id.index] = true;
  for (const ir::Mutation& mutation : graph.mutations) from_data[mutation.buffer.index] = true;
  for (const ir::Node& node : graph.nodes()) {
    bool reads = false;
    for (const ir::NamedArg& named : node.args)
      ir::for_each_value(named.arg, [&](ir::ValueId id) { reads |= from_data[id.index]; });
    for (const ir::ValueId id : node.results) from_data[id.index] = reads;
  }
  return from_data;
}

/// Symbols whose values come with the data.
ir::Symbols symbols_from_data(const ir::Graph& graph, const std::vector<bool>& from_data) {
  ir::Mentions found;
  for (const ir::Node& node : graph.nodes()) {
    for (const ir::ValueId id : node.results) {
      if (from_data[id.index]) ir::collect(graph.value(id).type, found);
    }
  }
  found.sizes.merge(found.data);
  return found.sizes;
}

using Deciding = std::set<std::tuple<std::string, int, std::string>>;

/// Where the data decide. A number that sizes alone decide (`torch.tensor(min(n, 64)).item()`) is
/// tried with them.
Deciding places_of_decisions(const ir::Graph& graph) {
  const std::vector<bool> from_data = values_from_data(graph);
  const ir::Symbols symbols = symbols_from_data(graph, from_data);
  Deciding found;
  for (const shape::Guard& guard : conditions_on_data(graph)) {
    ir::Mentions names;
    ir::collect(guard.condition, names);
    names.sizes.merge(names.data);
    const auto decides = [&](const std::string& name) {
      const auto dim = std::ranges::find(graph.dims, name, &shape::Dim::name);
      return (dim == graph.dims.end() || dim->from_data) && symbols.contains(name);
    };
    if (std::ranges::any_of(names.sizes, decides))
      found.emplace(guard.where.file, guard.where.line, guard.module_path);
  }
  for (const ir::Assumption& assumption : graph.assumptions) {
    const ir::Place& place = graph.place(assumption.place);
    if (from_data[assumption.value.index])
      found.emplace(place.where.file, place.where.line, place.module_path);
  }
  return found;
}

/// Whether data decide at the same places of the model. A branch on data that only one of two
/// captures met is a condition that the other one lacks.
bool data_decide_alike(const Program& a, const Program& b) {
  return places_of_decisions(a.graph) == places_of_decisions(b.graph);
}

bool same_graph(const ir::Graph& a, const ir::Graph& b) {
  return ir::same_program(a, b) &&
         std::ranges::is_permutation(conditions_on_data(a), conditions_on_data(b), {},
                                     &shape::Guard::condition, &shape::Guard::condition);
}

/// Whether two captures gave the same program, with the symbols unified that either of them
/// unified.
bool same_where_both_hold(const Program& a, const Program& b) {
  if (!same_constants(a, b)) return false;
  if (a.replacements == b.replacements) return same_graph(a.graph, b.graph);
  ir::Graph first = a.graph;
  ir::Graph second = b.graph;
  first.substitute(b.replacements);
  second.substitute(a.replacements);
  // What one of them put in a symbol's place may have symbols that the other replaced.
  first.substitute(a.replacements);
  second.substitute(b.replacements);
  return same_graph(first, second);
}

}  // namespace

void bind_trials(py::class_<Program, std::shared_ptr<Program>>& program) {
  program
      .def("same_as", [](const Program& self,
                         const Program& other) { return same_where_both_hold(self, other); })
      .def("data_decide_alike", &data_decide_alike)
      .def("sizes_against", &sizes_against)
      .def("widen", &widen)
      .def("admits", &admits)
      .def("take_validity", &take_validity)
      .def("open_conditions", &open_conditions)
      .def("decide_condition", &decide_condition)
      .def("drop_conditions", &drop_conditions);
}

}  // namespace modelport::binding
