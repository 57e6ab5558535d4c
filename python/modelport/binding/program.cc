#include "binding/program.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <set>

#include "ir/text.h"
#include "ir/verify.h"
#include "shape/program_dims.h"
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
    if (!shape::depends_on_data(guard.condition, program.graph.dims)) continue;
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
  py::class_<Program, std::shared_ptr<Program>> program(module, "Program");
  bind_trials(program);
  program.def("text", [](const Program& self) { return ir::print(self.graph); })
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
      .def("weights", [](const Program& self) { return self.weights; })
      .def("tied_names", [](const Program& self) { return self.tied_names; })
      .def("set_range",
           [](Program& self, const std::string& name, std::int64_t lo,
              std::optional<std::int64_t> hi) {
             for (shape::Dim& dim : self.graph.dims) {
               if (dim.name == name) dim.range = {lo, hi.value_or(shape::Range::kUnbounded)};
             }
           })
      .def("copy", [](const Program& self) { return std::make_shared<Program>(self); })
      .def("input_sizes", &input_sizes)
      .def("run", &run, py::arg("inputs"), py::arg("watch") = py::none(),
           py::arg("state") = capture::WeightTensors{});
  module.def(
      "parse_graph",
      [](const std::string& text, const capture::WeightTensors& weights) {
        auto program = std::make_shared<Program>();
        program->graph = ir::parse_graph(text);
        ir::verify(program->graph);
        program->weights = weights;
        return program;
      },
      py::arg("text"), py::arg("weights") = capture::WeightTensors{});
}

}  // namespace modelport::binding
