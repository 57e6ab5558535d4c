// .pt2 archives: programs out, programs in.
#include <ATen/ops/from_blob.h>
#include <pybind11/stl.h>

#include "backends/pt2/reader.h"
#include "backends/pt2/treespec.h"
#include "backends/pt2/writer.h"
#include "binding/program.h"
#include "capture/torch_dtype.h"
#include "passes/lower.h"

namespace modelport::binding {

namespace {

using signature::Constant;
using signature::Leaf;
using signature::Signature;

py::object constant_object(const Constant& constant) {
  if (std::holds_alternative<std::monostate>(constant.value)) return py::none();
  return std::visit(
      [](const auto& x) -> py::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>)
          return py::none();
        else
          return py::cast(x);
      },
      constant.value);
}

/// Leaves come as (name, whether it is in the graph, its value otherwise).
using LeafRow = std::tuple<std::string, bool, py::object>;

std::vector<Leaf> leaves_of(const std::vector<LeafRow>& rows) {
  std::vector<Leaf> leaves;
  for (const auto& [name, in_graph, value] : rows)
    leaves.push_back({name, in_graph, in_graph ? Constant{} : constant_of(value)});
  return leaves;
}

std::vector<LeafRow> rows_of(const std::vector<Leaf>& leaves) {
  std::vector<LeafRow> rows;
  for (const Leaf& leaf : leaves)
    rows.emplace_back(leaf.name, leaf.in_graph, constant_object(leaf.constant));
  return rows;
}

/// How the model is called, from a dict of what Python knows of it.
Signature signature_of(const py::dict& call) {
  return {leaves_of(py::cast<std::vector<LeafRow>>(call["inputs"])),
          leaves_of(py::cast<std::vector<LeafRow>>(call["outputs"])),
          py::cast<std::vector<std::string>>(call["arguments"]),
          py::cast<std::string>(call["input_structure"]),
          py::cast<std::string>(call["output_structure"]),
          py::cast<std::vector<std::pair<std::string, std::string>>>(call["given"])};
}

void write_archive(const Program& program, const std::string& path, const py::dict& call) {
  const Signature signature = signature_of(call);
  const weights::WeightStore store = store_of(program);
  const auto torch_version = py::cast<std::string>(call["torch_version"]);
  const auto device = py::cast<std::string>(call["device"]);
  const auto example = py::cast<std::string>(call["example"]);
  const py::gil_scoped_release no_gil;
  const ir::Graph graph = passes::lower_to(passes::Pt2Target{}, program.graph);
  pt2::write_pt2({.graph = graph,
                  .signature = signature,
                  .weights = store,
                  .torch_version = torch_version,
                  .device = device,
                  .sample_inputs = std::as_bytes(std::span(example))},
                 path);
}

/// What the archive would hold, for torch's deserializer: the program as JSON, and the tensors
/// themselves, those of the state dict and the constants, as {name: (tensor, is a parameter)}.
py::tuple parts(const Program& program, const py::dict& call) {
  const Signature signature = signature_of(call);
  const ir::Graph graph = passes::lower_to(passes::Pt2Target{}, program.graph);
  py::dict saved;
  py::dict constants;
  for (const ir::ValueId id : graph.weights) {
    const ir::Value& value = graph.value(id);
    at::Tensor tensor = program.weights.at(value.name);
    if (!tensor.is_contiguous()) tensor = tensor.contiguous();
    tensor = tensor.to(capture::to_torch(value.tensor().dtype));
    (pt2::is_saved(value) ? saved : constants)[py::str(value.name)] =
        py::make_tuple(tensor, value.weight_kind == ir::WeightKind::parameter);
  }
  const weights::WeightStore none;
  std::string json =
      pt2::program_json({.graph = graph,
                         .signature = signature,
                         .weights = none,
                         .torch_version = py::cast<std::string>(call["torch_version"]),
                         .device = py::cast<std::string>(call["device"])});
  return py::make_tuple(py::bytes(json), saved, constants);
}

/// A structure as Python walks it: None for a leaf, else (type, context as JSON, children).
py::object structure_object(const pt2::Structure& structure) {
  if (structure.is_leaf()) return py::none();
  py::list children;
  for (const pt2::Structure& child : structure.children) children.append(structure_object(child));
  return py::make_tuple(structure.type, structure.context, children);
}

py::tuple read(const std::string& path) {
  auto loaded = std::make_shared<pt2::Pt2Program>(pt2::read_pt2(std::filesystem::path(path)));
  auto program = std::make_shared<Program>();
  program->graph = loaded->graph;
  for (const weights::Weight& weight : loaded->weights.weights()) {
    // The archive is mapped read-only; tensors share it and keep it alive.
    auto* bytes = const_cast<std::byte*>(weight.bytes.data());
    const auto options = at::TensorOptions().dtype(capture::to_torch(weight.dtype));
    const std::vector<std::int64_t> sizes(weight.shape.begin(), weight.shape.end());
    program->weights.emplace(weight.name, at::from_blob(bytes, sizes, [loaded](void*) {}, options));
  }
  for (const auto& [alias, name] : loaded->weights.aliases())
    program->weights.emplace(alias, program->weights.at(name));
  const Signature& signature = loaded->signature;
  return py::make_tuple(program, rows_of(signature.inputs), rows_of(signature.outputs),
                        structure_object(pt2::parse_structure(signature.input_structure)),
                        structure_object(pt2::parse_structure(signature.output_structure)));
}

}  // namespace

Constant constant_of(const py::handle& value) {
  if (value.is_none()) return {};
  if (py::isinstance<py::bool_>(value)) return {py::cast<bool>(value)};
  if (py::isinstance<py::int_>(value)) return {py::cast<std::int64_t>(value)};
  if (py::isinstance<py::float_>(value)) return {py::cast<double>(value)};
  return {py::cast<std::string>(py::str(value))};
}

void bind_pt2(py::module_& module) {
  module.def("write_pt2", &write_archive);
  module.def("pt2_parts", &parts);
  module.def("read_pt2", &read);
}

}  // namespace modelport::binding
