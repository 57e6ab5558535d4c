#include "binding/program.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <set>

#include "ir/text.h"
#include "ir/verify.h"
#include "shape/widen.h"
#include "signature/limits.h"

namespace modelport::binding {

namespace {

py::object upper(std::int64_t hi) {
  return hi == shape::Range::kUnbounded ? py::none() : py::object(py::int_(hi));
}

py::dict place_dict(const SourceLine& where, const std::string& module_path) {
  py::dict place;
  place["file"] = where.file;
  place["line"] = where.line;
  place["function"] = where.function;
  place["module"] = module_path;
  return place;
}

}  // namespace

py::list dims_list(const ir::Graph& graph) {
  py::list rows;
  for (const shape::Dim& dim : graph.dims) {
    py::dict row;
    row["name"] = dim.name;
    row["lo"] = dim.range.lo;
    row["hi"] = upper(dim.range.hi);
    row["declared_lo"] = dim.declared.lo;
    row["declared_hi"] = upper(dim.declared.hi);
    row["hint"] = dim.hint;
    row["from_data"] = dim.from_data;
    rows.append(row);
  }
  return rows;
}

namespace {

py::list guards_list(const Program& program) {
  using Effect = shape::Guard::Effect;
  py::list rows;
  for (const shape::Guard& guard : program.guards) {
    py::dict row = place_dict(guard.where, guard.module_path);
    row["condition"] = shape::print(guard.condition);
    row["effect"] = guard.effect == Effect::unified   ? "unified"
                    : guard.effect == Effect::pinned  ? "pinned"
                    : guard.effect == Effect::bounded ? "bounded"
                                                      : "kept";
    std::set<std::string, std::less<>> symbols;
    shape::collect_symbols(guard.condition, symbols);
    row["symbols"] = std::vector<std::string>(symbols.begin(), symbols.end());
    rows.append(row);
  }
  return rows;
}

py::list inputs_list(const Program& program) {
  py::list rows;
  for (const ir::ValueId id : program.graph.inputs) {
    const ir::Value& value = program.graph.value(id);
    std::vector<std::string> sizes;
    for (const shape::Int& size : value.tensor().shape) sizes.push_back(shape::print(size));
    rows.append(py::make_tuple(value.name, std::string(name(value.tensor().dtype)), sizes));
  }
  return rows;
}

/// The sizes of the inputs where some symbols take other values than in the example run.
std::vector<std::vector<std::int64_t>> input_sizes(
    const Program& program, const std::map<std::string, std::int64_t>& changed) {
  shape::Bindings values;
  for (const shape::Dim& dim : program.graph.dims) values[dim.name] = dim.hint;
  for (const auto& [symbol, size] : changed) values[symbol] = size;
  std::vector<std::vector<std::int64_t>> sizes;
  for (const ir::ValueId id : program.graph.inputs) {
    sizes.emplace_back();
    for (const shape::Int& size : program.graph.value(id).tensor().shape)
      sizes.back().push_back(shape::evaluate(size, values));
  }
  return sizes;
}

shape::Values sizes_of_example(const Program& program) {
  shape::Values values;
  for (const shape::Dim& dim : program.graph.dims) values.ints[dim.name] = dim.hint;
  return values;
}

std::vector<shape::OpenCondition> open_conditions_of(Program& program) {
  return shape::open_conditions({program.graph.dims, program.graph.guards}, program.dims.met(),
                                program.tried);
}

/// Takes over the sizes of a trial at other sizes of the symbols named, which does the same as the
/// program. `first` is the capture that was tried.
void widen(Program& program, const Program& trial, const std::vector<std::string>& names,
           const Program& first) {
  shape::widen({program.graph.dims, program.graph.guards}, {.dims = trial.dims,
                                                            .widened = names,
                                                            .known = first.dims.met(),
                                                            .example = sizes_of_example(first)});
  program.tried.insert(program.tried.end(), trial.dims.met().begin(), trial.dims.met().end());
  program.tried.insert(program.tried.end(), first.dims.met().begin(), first.dims.met().end());
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
  program.tried.push_back({!guard.condition, guard.effect, guard.where, guard.module_path});
}

/// Nothing where more than sizes decides: data, or a symbol that has no value here.
std::optional<bool> holds(const shape::Bool& condition, const shape::Values& values) {
  try {
    return shape::evaluate(condition, values);
  } catch (const ExportError&) {
    return std::nullopt;
  }
}

/// The size near the example's, within its range, at which a condition does not hold and as many of
/// the others as possible do.
std::optional<std::int64_t> size_against(const Program& program, const shape::Bool& condition,
                                         const shape::Dim& dim) {
  constexpr std::int64_t kNear = 64;
  shape::Values values = sizes_of_example(program);
  std::optional<std::int64_t> best;
  std::ptrdiff_t fewest = 0;
  for (std::int64_t away = 1; away <= kNear; ++away) {
    for (const std::int64_t size : {dim.hint + away, dim.hint - away}) {
      if (size < dim.range.lo || size > dim.range.hi) continue;
      values.ints[dim.name] = size;
      if (holds(condition, values) != false) continue;
      const auto broken = std::ranges::count_if(program.graph.guards, [&](const auto& guard) {
        return holds(guard.condition, values) == false;
      });
      if (best && broken >= fewest) continue;
      best = size;
      fewest = broken;
    }
  }
  return best;
}

/// Symbols of the inputs that some condition besides their ranges concerns, each with a size that
/// breaks it while the others are as in the example.
std::vector<std::pair<std::string, std::int64_t>> sizes_against(const Program& program) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const shape::Guard& guard : program.graph.guards) {
    if (signature::depends_on_data(guard.condition, program.graph.dims)) continue;
    std::set<std::string, std::less<>> symbols;
    shape::collect_symbols(guard.condition, symbols);
    for (const shape::Dim& dim : program.graph.dims) {
      if (!symbols.contains(dim.name)) continue;
      const auto size = size_against(program, guard.condition, dim);
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
    if (signature::depends_on_data(guard.condition, other.graph.dims)) continue;
    if (std::ranges::none_of(program.graph.guards, same)) program.graph.guards.push_back(guard);
  }
}

/// Forgets the conditions that do not hold where some symbols have other sizes than in the example
/// of `first`.
void drop_conditions(Program& program, const std::map<std::string, std::int64_t>& changed,
                     const Program& first) {
  shape::Values values = sizes_of_example(first);
  for (const auto& [symbol, size] : changed) values.ints[symbol] = size;
  const auto broken = [&](const shape::Guard& guard) {
    return holds(guard.condition, values) == false;
  };
  std::erase_if(program.graph.guards, broken);
  std::erase_if(program.guards, broken);
}

/// Whether the conditions between sizes hold at these sizes.
bool admits(const Program& program, const std::map<std::string, std::int64_t>& sizes) {
  shape::Values values;
  values.ints.insert(sizes.begin(), sizes.end());
  return std::ranges::none_of(program.graph.guards, [&](const shape::Guard& guard) {
    return holds(guard.condition, values) == false;
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

/// Whether two captures gave the same program, with the symbols unified that either of them
/// unified.
bool same_where_both_hold(const Program& a, const Program& b) {
  if (!same_constants(a, b)) return false;
  if (a.replacements == b.replacements) return ir::same_program(a.graph, b.graph);
  ir::Graph first = a.graph;
  ir::Graph second = b.graph;
  first.substitute(b.replacements);
  second.substitute(a.replacements);
  // What one of them put in a symbol's place may have symbols that the other replaced.
  first.substitute(a.replacements);
  second.substitute(b.replacements);
  return ir::same_program(first, second);
}

py::list nodes_list(const Program& program) {
  py::list rows;
  for (const ir::Node& node : program.graph.nodes()) {
    const ir::Place& place = program.graph.place(node.place);
    py::dict row = place_dict(place.where, place.module_path);
    row["op"] = node.op;
    row["text"] = ir::print(program.graph, node);
    rows.append(row);
  }
  return rows;
}

py::list assumptions_list(const Program& program) {
  py::list rows;
  for (const ir::Assumption& assumption : program.graph.assumptions) {
    const ir::Place& place = program.graph.place(assumption.place);
    py::dict row = place_dict(place.where, place.module_path);
    row["expected"] = py::cast(assumption.expected);
    rows.append(row);
  }
  for (const shape::Guard& guard : program.graph.guards) {
    if (!signature::depends_on_data(guard.condition, program.graph.dims)) continue;
    py::dict row = place_dict(guard.where, guard.module_path);
    row["expected"] = shape::print(guard.condition);
    rows.append(row);
  }
  return rows;
}

py::object output_object(const capture::OutputValue& value) {
  return std::visit([](const auto& x) { return py::cast(x); }, value);
}

py::tuple run(const Program& program, const std::vector<at::Tensor>& inputs,
              const py::object& watch, const capture::WeightTensors& state) {
  std::function<void(ir::NodeId, const std::vector<at::Tensor>&)> watcher;
  if (!watch.is_none()) {
    watcher = [&](ir::NodeId id, const std::vector<at::Tensor>& results) {
      const py::gil_scoped_acquire gil;
      watch(id.index, results);
    };
  }
  capture::RunResult result;
  {
    const py::gil_scoped_release no_gil;
    result = capture::run_graph({program.graph, program.weights, inputs, state, watcher});
  }
  py::list outputs;
  for (const capture::OutputValue& value : result.outputs) outputs.append(output_object(value));
  py::dict mutated;
  for (const auto& [name, tensor] : result.mutated_buffers)
    mutated[py::str(name)] = py::cast(tensor);
  return py::make_tuple(outputs, mutated);
}

}  // namespace

void bind_program(py::module_& module) {
  py::class_<Program, std::shared_ptr<Program>>(module, "Program")
      .def("text", [](const Program& self) { return ir::print(self.graph); })
      .def("verify", [](const Program& self) { ir::verify(self.graph); })
      .def("inputs", &inputs_list)
      .def("output_names",
           [](const Program& self) {
             std::vector<std::string> names;
             for (const ir::Output& output : self.graph.outputs) names.push_back(output.name);
             return names;
           })
      .def("nodes", &nodes_list)
      .def("node_count", [](const Program& self) { return self.graph.nodes().size(); })
      .def("dims", [](const Program& self) { return dims_list(self.graph); })
      .def("guards", &guards_list)
      .def("assumptions", &assumptions_list)
      .def("replacements",
           [](const Program& self) {
             std::map<std::string, std::string> printed;
             for (const auto& [symbol, value] : self.replacements)
               printed[symbol] = shape::print(value);
             return printed;
           })
      .def("replaced_sizes",
           [](const Program& self) {
             std::set<std::string> names;
             for (const auto& [symbol, value] : self.replacements) {
               const shape::Dim* dim = self.dims.find(symbol);
               if (dim != nullptr && !dim->from_data) names.insert(symbol);
             }
             return names;
           })
      .def("same_as", [](const Program& self,
                         const Program& other) { return same_where_both_hold(self, other); })
      .def("weights", [](const Program& self) { return self.weights; })
      .def("set_range",
           [](Program& self, const std::string& name, std::int64_t lo,
              std::optional<std::int64_t> hi) {
             for (shape::Dim& dim : self.graph.dims) {
               if (dim.name == name) dim.range = {lo, hi.value_or(shape::Range::kUnbounded)};
             }
           })
      .def("copy", [](const Program& self) { return std::make_shared<Program>(self); })
      .def("input_sizes", &input_sizes)
      .def("sizes_against", &sizes_against)
      .def("widen", &widen)
      .def("admits", &admits)
      .def("take_validity", &take_validity)
      .def("open_conditions", &open_conditions)
      .def("decide_condition", &decide_condition)
      .def("drop_conditions", &drop_conditions)
      .def("run", &run, py::arg("inputs"), py::arg("watch") = py::none(),
           py::arg("state") = capture::WeightTensors{});
  module.def("parse_graph", [](const std::string& text) {
    auto program = std::make_shared<Program>();
    program->graph = ir::parse_graph(text);
    ir::verify(program->graph);
    return program;
  });
}

}  // namespace modelport::binding
