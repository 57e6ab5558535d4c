// The sample calls of the operator table as programs of one node, for tests and tools.
#include <pybind11/stl.h>

#include <algorithm>

#include "binding/program.h"
#include "capture/torch_dtype.h"
#include "ops/table/sample.h"

namespace modelport::binding {

namespace {

/// A symbol that is no input's size as it stands (only 2*a, or an argument) gets an input that has
/// it, as it would have in a model.
void add_size_inputs(ops::Sample& sample) {
  const std::vector<ir::ValueId> operands = sample.graph.inputs;
  for (const shape::Dim& dim : sample.dims.all()) {
    const auto has = [&](ir::ValueId id) {
      const auto& sizes = sample.graph.value(id).tensor().shape;
      return std::find(sizes.begin(), sizes.end(), shape::Int::symbol(dim.name)) != sizes.end();
    };
    if (std::any_of(operands.begin(), operands.end(), has)) continue;
    sample.graph.add_input("size_" + dim.name,
                           ir::TensorType{Dtype::boolean, {shape::Int::symbol(dim.name)}});
    sample.draws.push_back({});
  }
}

/// One call: its text, the program, and for each input its name, dtype, sizes, and the number below
/// which integers are drawn.
py::tuple sample_row(const ops::OpDef& op, ops::Sample& sample) {
  auto program = std::make_shared<Program>();
  add_size_inputs(sample);
  const ops::Results results = sample.infer(op);
  program->graph = sample.graph;
  program->graph.name = "sample";
  const ir::NodeId node = program->graph.add_node(std::string(op.name), sample.args, results);
  std::size_t count = 0;
  for (const ir::ValueId id : program->graph.node(node).results)
    program->graph.outputs.push_back({"y" + std::to_string(count++), {id}});
  for (const shape::Dim& dim : sample.dims.all()) {
    if (!sample.dims.replacements().contains(dim.name)) program->graph.dims.push_back(dim);
  }
  program->graph.substitute(sample.dims.replacements());
  py::list inputs;
  for (std::size_t i = 0; i < sample.draws.size(); ++i) {
    const ir::Value& input = sample.graph.value(sample.graph.inputs[i]);
    std::vector<std::int64_t> sizes;
    for (const shape::Int& size : input.tensor().shape) sizes.push_back(sample.dims.hint(size));
    inputs.append(py::make_tuple(input.name, capture::to_torch(input.tensor().dtype), sizes,
                                 sample.draws[i].below));
  }
  return py::make_tuple(sample.text, program, inputs);
}

}  // namespace

void bind_samples(py::module_& module) {
  module.def("op_names", [] {
    std::vector<std::string> names;
    for (const ops::OpDef* op : ops::all_ops()) names.emplace_back(op->name);
    return names;
  });
  module.def("onnx_cell", [](const std::string& name) {
    const ops::OpDef* op = ops::find_op(name);
    const auto* refused = op == nullptr ? nullptr : std::get_if<ops::Refuse>(&op->onnx);
    return py::make_tuple(op != nullptr && ops::is_filled(op->onnx),
                          refused == nullptr ? std::string() : std::string(refused->reason));
  });
  module.def("sample_programs", [](const std::string& name) {
    const ops::OpDef* op = ops::find_op(name);
    if (op == nullptr) throw py::key_error("there is no operator " + name);
    py::list rows;
    for (const shape::Bindings& sizes : ops::sample_sizes(*op)) {
      for (ops::Sample& sample : ops::samples_of(*op, sizes)) rows.append(sample_row(*op, sample));
    }
    return rows;
  });
}

}  // namespace modelport::binding
